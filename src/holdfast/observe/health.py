"""Serves on a thread whether a process is alive and ready, and its metrics, over HTTP.

`/healthz` asks whether the event loop still answers, `/readyz` whether the parts that the process
needs are there; `/metrics` is for Prometheus, which sends a token. A thread answers, so that a busy
or stuck event loop does not make the process look gone.
"""

from __future__ import annotations

import asyncio
import hmac
import socket
import socketserver
import sys
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

import orjson
from prometheus_client.exposition import choose_encoder

from holdfast.clock import Clock, SystemClock
from holdfast.errors import UserError
from holdfast.observe.metrics import Metrics
from holdfast.settings import setting

#: None if the part is ready, else what is wrong with it.
Check = Callable[[], Awaitable[str | None]]

_ANSWER_SECONDS = 1.0
_CHECK_SECONDS = 3.0
_CLIENT_SECONDS = 10.0
_POLL_SECONDS = 0.1
_JSON = "application/json"

#: Status, content type and body
Answer = tuple[int, str, bytes]
_NOT_FOUND: Answer = (
    404,
    _JSON,
    orjson.dumps({"error": "not found", "known": ["/healthz", "/readyz", "/metrics"]}),
)


@dataclass(frozen=True, slots=True)
class HealthOptions:
    """Where a process serves health and metrics. Reading `/metrics` needs the token."""

    port: int | None = setting(
        None,
        "Port of `/healthz`, `/readyz` and `/metrics`; 0 picks a free one.",
        0,
        65535,
        name="HEALTH_PORT",
        shown="not served",
    )
    host: str = setting(
        "127.0.0.1",
        "Address of `/healthz`, `/readyz` and `/metrics`; use `0.0.0.0` in a container.",
        name="HEALTH_HOST",
    )
    metrics_token: str = setting(
        "",
        "Token that `/metrics` requires: `Authorization: Bearer TOKEN`.",
        kind="header",
        secret=True,
        shown="none",
    )
    stall_seconds: float = 30.0  # an event loop that is blocked for this long is not alive

    def allows(self, authorization: str) -> bool:
        kind, _, given = authorization.partition(" ")
        fits = hmac.compare_digest(given.strip().encode(), self.metrics_token.encode())
        return bool(self.metrics_token) and kind.lower() == "bearer" and fits


METRICS_HINT = "Send the token that HOLDFAST_METRICS_TOKEN sets (Authorization: Bearer TOKEN)."


class Heartbeat:
    """Asks an event loop whether it still runs.

    A loop that an item holds up for a moment is alive; one that has not answered for
    `stall_seconds` is not."""

    def __init__(self, loop: asyncio.AbstractEventLoop, stall_seconds: float, clock: Clock) -> None:
        self._loop = loop
        self._stall_seconds = stall_seconds
        self._clock = clock
        self._lock = Lock()
        self._asked: Future[None] | None = None
        self._asked_at = 0.0

    def failure(self) -> str | None:
        """Returns what is wrong with the loop, or None; answers within about a second."""
        with self._lock:
            if self._asked is None or self._asked.done():
                self._asked, self._asked_at = self._ask(), self._clock.monotonic()
            asked, asked_at = self._asked, self._asked_at
        try:
            asked.result(_ANSWER_SECONDS)
        except TimeoutError:
            silent = self._clock.monotonic() - asked_at
            if silent >= self._stall_seconds:
                return f"the event loop has not answered for {silent:.0f} s"
        except RuntimeError as closed:
            return str(closed)
        return None

    def _ask(self) -> Future[None]:
        answer: Future[None] = Future()
        try:
            self._loop.call_soon_threadsafe(answer.set_result, None)
        except RuntimeError as closed:
            answer.set_exception(closed)
        return answer


class HealthServer:
    """Serves health from its creation until `stop`; port 0 takes a free one."""

    def __init__(
        self,
        port: int,
        metrics: Metrics,
        checks: Mapping[str, Check],
        loop: asyncio.AbstractEventLoop,
        *,
        options: HealthOptions | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._metrics = metrics
        self._options = options or HealthOptions()
        self._checks = checks
        self._loop = loop
        self._heartbeat = Heartbeat(loop, self._options.stall_seconds, clock or SystemClock())
        self._draining = False
        self._listener = _Listener(self._options.host, port, self.answer)

    @property
    def port(self) -> int:
        return self._listener.port

    def drain(self) -> None:
        """Marks the process as alive, but not ready for more work."""
        self._draining = True

    def stop(self) -> None:
        self._listener.stop()

    def answer(self, path: str, accept: str, authorization: str) -> Answer:
        """Answers a request, on a thread of the server."""
        match path.partition("?")[0]:
            case "/healthz":
                wrong = self._heartbeat.failure()
                body = {"alive": wrong is None, "event_loop": wrong or "ok"}
                return (503 if wrong else 200), _JSON, orjson.dumps(body)
            case "/readyz":
                parts = self._parts()
                ready = all(state == "ok" for state in parts.values())
                body = {"ready": ready, "parts": parts}
                return (200 if ready else 503), _JSON, orjson.dumps(body)
            case "/metrics":
                if not self._options.allows(authorization):
                    return 401, _JSON, orjson.dumps({"error": "no token", "hint": METRICS_HINT})
                encode, content_type = choose_encoder(accept)
                return 200, content_type, encode(self._metrics.registry)
        return _NOT_FOUND

    def _parts(self) -> dict[str, str]:
        process = "draining" if self._draining else self._heartbeat.failure() or "ok"
        asking = {name: self._ask(check) for name, check in dict(self._checks).items()}
        return {"process": process} | {name: _answer_of(each) for name, each in asking.items()}

    def _ask(self, check: Check) -> Future[str | None] | None:
        asked = _within_bound(check)
        try:
            return asyncio.run_coroutine_threadsafe(asked, self._loop)
        except RuntimeError:  # the loop was closed
            asked.close()
            return None


class WaitingServer:
    """Serves the health port of a process that has no event loop yet, because it waits for a part
    that it cannot start without: it is alive, but not ready, and has no metrics."""

    def __init__(self, host: str, port: int, part: str, reason: str) -> None:
        self._body = orjson.dumps({"ready": False, "parts": {"process": "waiting", part: reason}})
        self._listener = _Listener(host, port, self.answer)

    def stop(self) -> None:
        self._listener.stop()

    def answer(self, path: str, accept: str, authorization: str) -> Answer:
        match path.partition("?")[0]:
            case "/healthz":
                return 200, _JSON, orjson.dumps({"alive": True})
            case "/readyz" | "/metrics":
                return 503, _JSON, self._body
        return _NOT_FOUND


class _Listener:
    """Answers requests on a thread from its creation until `stop`."""

    def __init__(self, host: str, port: int, answer: Callable[[str, str, str], Answer]) -> None:
        self._server = _listen(host, port, _handler_of(answer))
        self._thread = Thread(
            target=self._server.serve_forever, args=(_POLL_SECONDS,), name="health", daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        return self._server.server_port

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


async def _within_bound(check: Check) -> str | None:
    async with asyncio.timeout(_CHECK_SECONDS):
        return await check()


def _answer_of(asked: Future[str | None] | None) -> str:
    if asked is None:
        return "the process is ending"
    try:
        return asked.result(_CHECK_SECONDS + _ANSWER_SECONDS) or "ok"
    except TimeoutError:
        asked.cancel()
        return f"no answer within {_CHECK_SECONDS:.0f} s"
    except Exception as error:
        # A probe can be read by anyone: the class says enough, a message might contain secrets.
        return f"failed with {type(error).__name__}"


class _Server(ThreadingHTTPServer):
    def server_bind(self) -> None:
        # HTTPServer's own method asks the DNS for the host's name, and a start may hang on that.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):  # otherwise the client went away
            super().handle_error(request, client_address)


class _ServerOverIpv6(_Server):
    address_family = socket.AF_INET6


def _listen(host: str, port: int, handler: type[BaseHTTPRequestHandler]) -> _Server:
    server = _ServerOverIpv6 if ":" in host else _Server
    try:
        return server((host, port), handler)
    except (OSError, OverflowError) as error:
        raise UserError(
            f"cannot serve health and metrics at {host}:{port}: {error}",
            "Choose another port with --health-port or HOLDFAST_HEALTH_PORT, or another address "
            "with HOLDFAST_HEALTH_HOST.",
        ) from error


def _handler_of(answer: Callable[[str, str, str], Answer]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _CLIENT_SECONDS

        def do_GET(self) -> None:
            accept, authorization = (
                self.headers.get(name, "") for name in ("Accept", "Authorization")
            )
            status, content_type, body = answer(self.path, accept, authorization)
            self.send_response(status)
            if status == 401:
                self.send_header("WWW-Authenticate", "Bearer")
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET

        def version_string(self) -> str:
            return "holdfast"

        def log_message(self, format: str, *values: object) -> None:
            """Logs nothing: probes come every few seconds and would only be noise."""

    return Handler
