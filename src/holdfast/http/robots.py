"""Obeys robots.txt by RFC 9309: fetched once a day per origin.

A file that does not exist (4xx) allows everything; one that cannot be fetched now (5xx, silence)
allows nothing for the moment.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import httpx2
from protego import Protego

from holdfast.clock import Clock
from holdfast.errors import ItemError
from holdfast.http.reply import Reply

MAX_ROBOTS_BYTES = 500 * 1024
MAX_ROBOTS_REDIRECTS = 5

_FRESH_SECONDS = 24 * 3600.0
# A shared file is looked up more often, so that none is used for more than a day.
_SHARED_SECONDS, _LOOKED_UP_SECONDS = 23 * 3600.0, 3600.0
_UNAVAILABLE_SECONDS = 60.0
_MOST_ORIGINS = 10_000
_PRODUCT = re.compile(r"[A-Za-z_-]+")
# These errors say more about the host than about its robots.txt: the item gets them as they are.
_PASSED_ON = frozenset({"RATE_LIMITED", "PRIVATE_ADDRESS", "DNS_ERROR", "CONNECTION_REFUSED"})
# A redirect that leads nowhere counts as no file.
_NO_FILE = frozenset({"INVALID_RESPONSE", "INVALID_URL"})

Fetch = Callable[[str], Awaitable[Reply]]
SlowDown = Callable[[str, float], Awaitable[None]]


class RobotsFile(NamedTuple):
    """A host's robots.txt; None: the host has no such file, and allows everything."""

    text: str | None


class SharedFiles(Protocol):
    """The store in which processes keep robots.txt for each other, by origin."""

    async def read(self, origin: str) -> RobotsFile | None: ...

    async def put(self, origin: str, file: RobotsFile, seconds: float) -> None: ...


@dataclass(frozen=True, slots=True)
class _Rules:
    expires_at: float
    file: Protego | None = None  # None: everything is allowed
    unavailable: str | None = None  # why nothing is allowed for the moment


class Robots:
    def __init__(
        self,
        fetch: Fetch,
        crawl_delay: SlowDown,
        clock: Clock,
        user_agent: str,
        shared: SharedFiles | None = None,
    ) -> None:
        self._fetch = fetch
        self._shared = shared
        self._crawl_delay = crawl_delay
        self._clock = clock
        product = _PRODUCT.match(user_agent)
        self._agent = product[0].lower() if product else user_agent.lower()
        self._rules: dict[str, _Rules] = {}
        self._loading: dict[str, asyncio.Lock] = {}

    async def check(self, url: httpx2.URL) -> None:
        """Raises ROBOTS_DISALLOWED, or CONTENT_UNAVAILABLE while the rules cannot be fetched."""
        origin = f"{url.scheme}://{url.netloc.decode('ascii')}"
        rules = self._fresh(origin) or await self._load(origin)
        if rules.unavailable is not None:
            raise ItemError("CONTENT_UNAVAILABLE", rules.unavailable)
        if rules.file is not None and not rules.file.can_fetch(str(url), self._agent):
            raise ItemError(
                "ROBOTS_DISALLOWED", f"{origin}/robots.txt disallows {url.path} for {self._agent}"
            )

    def _fresh(self, origin: str) -> _Rules | None:
        rules = self._rules.get(origin)
        if rules is None or rules.expires_at <= self._clock.monotonic():
            return None
        return rules

    async def _load(self, origin: str) -> _Rules:
        """Fetches the file once, however many requests wait for it."""
        lock = self._loading.setdefault(origin, asyncio.Lock())
        try:
            async with lock:
                rules = self._fresh(origin)
                if rules is None:
                    rules = await self._looked_up(origin) or await self._fetched(origin)
                    self._keep(origin, rules)
                return rules
        finally:
            self._loading.pop(origin, None)

    async def _looked_up(self, origin: str) -> _Rules | None:
        file = await self._shared.read(origin) if self._shared is not None else None
        return None if file is None else await self._parsed(origin, file, _LOOKED_UP_SECONDS)

    async def _share(self, origin: str, file: RobotsFile) -> _Rules:
        if self._shared is not None:
            await self._shared.put(origin, file, _SHARED_SECONDS)
        return await self._parsed(origin, file, _FRESH_SECONDS)

    async def _fetched(self, origin: str) -> _Rules:
        try:
            reply = await self._fetch(f"{origin}/robots.txt")
        except ItemError as error:
            if error.code in _PASSED_ON:
                raise
            if error.code in _NO_FILE:
                return await self._share(origin, RobotsFile(None))
            return self._forbidding(f"{origin}/robots.txt cannot be read: {error.message}")
        if reply.status >= 500:
            return self._forbidding(f"{origin}/robots.txt cannot be read: status {reply.status}")
        text = reply.content.decode("utf-8-sig", "replace") if reply.ok else None
        return await self._share(origin, RobotsFile(text))

    async def _parsed(self, origin: str, file: RobotsFile, seconds: float) -> _Rules:
        expires_at = self._clock.monotonic() + seconds
        if file.text is None:
            return _Rules(expires_at)
        rules = await asyncio.to_thread(Protego.parse, file.text)
        delay = rules.crawl_delay(self._agent)
        if delay:
            await self._crawl_delay(origin, delay)
        return _Rules(expires_at, file=rules)

    def _forbidding(self, reason: str) -> _Rules:
        return _Rules(self._clock.monotonic() + _UNAVAILABLE_SECONDS, unavailable=reason)

    def _keep(self, origin: str, rules: _Rules) -> None:
        self._rules.pop(origin, None)
        self._rules[origin] = rules
        if len(self._rules) > _MOST_ORIGINS:
            del self._rules[next(iter(self._rules))]
