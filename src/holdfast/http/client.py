"""The polite client: gates, robots.txt, redirects checked hop by hop, replies with a code."""

from __future__ import annotations

import asyncio
import copy
import random
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, Self

from holdfast.clock import Clock
from holdfast.errors import GateWait, ItemError
from holdfast.http.addresses import CheckedNetwork
from holdfast.http.message import Message, check_hop, checked_url, compose, redirected
from holdfast.http.options import HttpOptions
from holdfast.http.reply import Reply
from holdfast.http.robots import MAX_ROBOTS_BYTES, MAX_ROBOTS_REDIRECTS, Robots, SharedFiles
from holdfast.http.statuses import http_date, is_throttle, retry_after_seconds
from holdfast.http.streams import Network
from holdfast.http.wire import Answer, Into, Wire

_LONGEST_CRAWL_DELAY = 60.0
_SHORTEST_THROTTLE = 1.0
_SERVER_ERROR = 500
_HOP_PATIENCE_SECONDS = 60.0


class Passage(Protocol):
    """One request through a gate, which learns how it ended."""

    def throttled(self) -> None: ...

    def failed(self) -> None: ...


class Gates(Protocol):
    """What the client needs from the gates that all workers share."""

    def passing(self, name: str, /) -> AbstractAsyncContextManager[Passage]:
        """Waits briefly for a permit or raises GateWait; the body counts as in flight."""

    async def close(self, name: str, seconds: float, reason: str) -> None:
        """Closes the gate for this many seconds."""

    async def slow_down(self, name: str, spacing: float) -> None:
        """Keeps requests at least this many seconds apart."""


@dataclass(frozen=True, slots=True)
class _Walk:
    """What applies to all hops of one call."""

    seconds: float
    max_bytes: int
    max_redirects: int
    off_host: bool
    robots: bool
    cut: bool = False
    into: Into | None = None


class HttpClient:
    """The HTTP client; each process has one, which all its tasks may use."""

    def __init__(
        self,
        gates: Gates,
        options: HttpOptions,
        clock: Clock,
        rng: random.Random,
        *,
        network: Network | None = None,
        robots_files: SharedFiles | None = None,
    ) -> None:
        self._gates = gates
        self._options = options
        self._clock = clock
        self._rng = rng
        network = network or CheckedNetwork(allow_private=options.allow_private_addresses)
        self._wire = Wire(options, network, clock)
        self._robots = Robots(
            self._fetch_robots, self._crawl_delay, clock, options.user_agent, robots_files
        )

    def through(self, gates: Gates) -> Self:
        """Returns the same client, with the same connections, whose requests pass these gates."""
        other = copy.copy(self)
        other._gates = gates
        return other

    async def get(self, url: str, **options: Any) -> Reply:
        return await self.request("GET", url, **options)

    async def post(self, url: str, **options: Any) -> Reply:
        return await self.request("POST", url, **options)

    async def request(
        self,
        method: str,
        url: str,
        *,
        timeout: float | None = None,
        max_bytes: int | None = None,
        raise_for_status: bool = True,
        robots: bool | None = None,
        follow_off_host: bool | None = None,
        into: Into | None = None,
        **sent: Any,
    ) -> Reply:
        """Sends a request politely; returns a whole reply or raises ItemError with a code. With
        `into`, a function, the body of a success goes there part by part, and the reply has none.

        A request may have `params`, `headers` and one of `json`, `data` and `content`. The other
        options override the client's for this call."""
        message = compose(method, url, **sent)
        defaults = self._options
        walk = _Walk(
            seconds=defaults.timeout_seconds if timeout is None else timeout,
            max_bytes=defaults.max_bytes if max_bytes is None else max_bytes,
            max_redirects=defaults.max_redirects,
            off_host=defaults.follow_off_host if follow_off_host is None else follow_off_host,
            robots=defaults.obey_robots if robots is None else robots,
            into=into,
        )
        reply = await self._follow(message, walk)
        if raise_for_status:
            reply.raise_for_status()
        return reply

    async def throttled(self, reply: Reply, reason: str, at_least: float = 0.0) -> NoReturn:
        """Handles servers that ask for patience in other words than 429: closes the gate of the
        reply's host for all workers, for at least that many seconds, and raises RATE_LIMITED."""
        seconds = max(at_least, reply.retry_after or self._default_throttle())
        await self._gates.close(_gate_of(reply.url), seconds, reason)
        raise ItemError("RATE_LIMITED", reason, retry_after=seconds)

    def unavailable(self, reply: Reply, reason: str) -> NoReturn:
        """Handles servers that say in other words than 5xx that they cannot answer now: raises
        NETWORK_ERROR, which is tried again."""
        label = Message("GET", checked_url(reply.url), {}).label  # without the query
        raise ItemError("NETWORK_ERROR", f"{label}: {reason}", retry_after=reply.retry_after)

    def close(self) -> None:
        """Closes idle connections at once, and those in use when they become idle."""
        self._wire.close()

    async def _follow(self, message: Message, walk: _Walk) -> Reply:
        passed: list[str] = []
        seconds = walk.seconds
        while True:
            if walk.robots:
                await self._robots.check(message.url)
            async with AsyncExitStack() as stack:
                passage = await self._enter(stack, message.host, patient=bool(passed))
                started = self._clock.monotonic()
                answer = await self._wire.send(
                    message,
                    seconds=seconds,
                    max_bytes=walk.max_bytes,
                    cut=walk.cut,
                    into=walk.into,
                )
                seconds -= self._clock.monotonic() - started
                reply = await self._reply(message, answer, tuple(passed))
                if reply.throttled:
                    passage.throttled()
                elif reply.status >= _SERVER_ERROR:
                    passage.failed()
            following = redirected(message, answer.status, answer.headers.get("location"))
            if following is None:
                return reply
            passed.append(str(message.url))
            if len(passed) > walk.max_redirects:
                raise ItemError(
                    "INVALID_RESPONSE", f"{message.label}: more than {walk.max_redirects} redirects"
                )
            check_hop(message, following, passed, walk.off_host)
            message = following

    async def _enter(self, stack: AsyncExitStack, gate: str, *, patient: bool) -> Passage:
        """Passes a gate.

        A hop after the first waits for it here: if the item gave up its place, it would begin with
        the first hop again, and wait for the same gate after it."""
        give_up_at = self._clock.monotonic() + (_HOP_PATIENCE_SECONDS if patient else 0.0)
        while True:
            try:
                return await stack.enter_async_context(self._gates.passing(gate))
            except GateWait as wait:
                if self._clock.monotonic() + wait.seconds > give_up_at:
                    raise
                await asyncio.sleep(wait.seconds)

    async def _reply(self, message: Message, answer: Answer, passed: tuple[str, ...]) -> Reply:
        """Returns the response as pipelines see it. One that asks to wait closes the gate first."""
        retry_after = answer.headers.get("retry-after")
        throttled = is_throttle(answer.status, retry_after)
        seconds = self._retry_after(answer, retry_after)
        if throttled:
            seconds = seconds or self._default_throttle()
            await self._gates.close(message.host, seconds, f"HTTP {answer.status}")
        return Reply(
            answer.status,
            str(message.url),
            answer.headers,
            answer.content,
            history=passed,
            retry_after=seconds,
            throttled=throttled,
        )

    def _retry_after(self, answer: Answer, asked: str | None) -> float | None:
        if asked is None:
            return None
        sent_at = http_date(answer.headers.get("date")) or self._clock.now()
        seconds = retry_after_seconds(asked, sent_at)
        if seconds is None:
            return None
        return min(max(seconds, _SHORTEST_THROTTLE), self._options.max_retry_after_seconds)

    def _default_throttle(self) -> float:
        return self._options.throttle_seconds * self._rng.uniform(1.0, 1.5)

    async def _fetch_robots(self, url: str) -> Reply:
        walk = _Walk(
            seconds=self._options.timeout_seconds,
            max_bytes=MAX_ROBOTS_BYTES,
            max_redirects=MAX_ROBOTS_REDIRECTS,
            off_host=True,
            robots=False,
            cut=True,
        )
        reply = await self._follow(compose("GET", url), walk)
        if reply.throttled:
            reply.raise_for_status()
        return reply

    async def _crawl_delay(self, origin: str, seconds: float) -> None:
        await self._gates.slow_down(_gate_of(origin), min(seconds, _LONGEST_CRAWL_DELAY))


def _gate_of(url: str) -> str:
    return Message("GET", checked_url(url), {}).host
