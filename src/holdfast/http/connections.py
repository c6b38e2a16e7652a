"""Keeps HTTP/1.1 connections open between requests.

A connection that did not end its exchange, for whatever reason, is closed at once and never used
again; closing needs no waiting, so that a cancelled request loses no place.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

import h11
import httpx2

from holdfast.clock import Clock
from holdfast.http.options import HttpOptions
from holdfast.http.streams import Network, TcpStream

_KEEPALIVE_SECONDS = 15.0
_READ_BYTES = 64 * 1024
_LONGEST_HEAD = 100 * 1024
_PORTS = {"http": 80, "https": 443}


class Origin(NamedTuple):
    scheme: str
    host: str
    port: int


def origin_of(url: httpx2.URL) -> Origin:
    return Origin(url.scheme, url.raw_host.decode("ascii"), url.port or _PORTS[url.scheme])


class Connection:
    """One connection; raises OSError, and the errors of h11."""

    def __init__(self, stream: TcpStream) -> None:
        self._stream = stream
        self._state = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LONGEST_HEAD)

    async def ask(self, request: h11.Request, body: bytes) -> h11.Response:
        """Sends the request; returns the head of the response."""
        send = self._state.send
        message = send(request) or b""
        if body:
            message += send(h11.Data(data=body)) or b""
        message += send(h11.EndOfMessage()) or b""
        with suppress(OSError):  # a server may answer before it has read everything
            await self._stream.write(message)
        while True:
            event = await self._event()
            if type(event) is h11.Response:
                return event

    async def body(self) -> AsyncGenerator[bytes]:
        while type(event := await self._event()) is h11.Data:
            yield bytes(event.data)

    async def _event(self) -> Any:
        state = self._state
        while (event := state.next_event()) is h11.NEED_DATA:
            data = await self._stream.read(_READ_BYTES)
            if not data and state.their_state is h11.SEND_RESPONSE:
                raise ConnectionError("the server closed the connection without a response")
            state.receive_data(data)
        return event

    def renew(self) -> bool:
        """Prepares for another request; returns whether one may follow.

        Bytes after the response would be taken for the beginning of the next."""
        state = self._state
        if state.our_state is not h11.DONE or state.their_state is not h11.DONE:
            return False
        if state.trailing_data[0]:
            return False
        state.start_next_cycle()
        return True

    @property
    def is_quiet(self) -> bool:
        return self._stream.is_quiet

    def close(self) -> None:
        self._stream.close()


class Connections:
    """Idle connections by origin, and no more than allowed altogether."""

    def __init__(
        self, network: Network, context: ssl.SSLContext, options: HttpOptions, clock: Clock
    ) -> None:
        context.set_alpn_protocols(["http/1.1"])
        self._network = network
        self._context = context
        self._seconds = options.connect_timeout_seconds
        self._most = options.max_connections
        self._places = asyncio.Semaphore(options.max_connections)
        self._clock = clock
        self._in_use = 0
        self._is_closed = False
        #: In the order in which they became idle, with the time at which each expires.
        self._idle: dict[Connection, tuple[Origin, float]] = {}
        self._of_origin: dict[Origin, list[Connection]] = {}

    @asynccontextmanager
    async def to(self, origin: Origin) -> AsyncIterator[Connection]:
        async with self._places:
            self._in_use += 1
            connection = None
            try:
                connection = self._reused(origin) or await self._connect(origin)
                yield connection
            except BaseException:
                if connection is not None:
                    connection.close()
                raise
            else:
                self._keep(origin, connection)
            finally:
                self._in_use -= 1

    def close(self) -> None:
        """Closes idle connections; the others are closed when they become idle."""
        self._is_closed = True
        for connection in list(self._idle):
            self._drop(connection)

    def _reused(self, origin: Origin) -> Connection | None:
        """Returns the connection that was used last: its server is the least likely to have closed
        it."""
        self._drop_expired()
        while waiting := self._of_origin.get(origin):
            connection = waiting[-1]
            if connection.is_quiet:
                self._forget(connection)
                return connection
            self._drop(connection)
        return None

    def _drop_expired(self) -> None:
        now = self._clock.monotonic()
        while self._idle:
            connection = next(iter(self._idle))
            if self._idle[connection][1] > now:
                return
            self._drop(connection)

    async def _connect(self, origin: Origin) -> Connection:
        while self._idle and len(self._idle) + self._in_use > self._most:
            self._drop(next(iter(self._idle)))
        stream = await self._network.connect(origin.host, origin.port, self._seconds)
        if origin.scheme == "https":
            await stream.start_tls(self._context, origin.host, self._seconds)
        return Connection(stream)

    def _keep(self, origin: Origin, connection: Connection) -> None:
        if self._is_closed or not connection.renew():
            connection.close()
            return
        self._idle[connection] = origin, self._clock.monotonic() + _KEEPALIVE_SECONDS
        self._of_origin.setdefault(origin, []).append(connection)

    def _drop(self, connection: Connection) -> None:
        self._forget(connection)
        connection.close()

    def _forget(self, connection: Connection) -> None:
        origin, _ = self._idle.pop(connection)
        waiting = self._of_origin[origin]
        waiting.remove(connection)
        if not waiting:
            del self._of_origin[origin]
