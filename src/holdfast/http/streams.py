"""TCP and TLS connections on the event loop's own transports."""

from __future__ import annotations

import asyncio
import select
import ssl
from typing import Any, Protocol

_MOST_UNREAD = 256 * 1024  # with more unread, the server has to wait


class Network(Protocol):
    async def connect(self, host: str, port: int, seconds: float) -> TcpStream:
        """Connects; raises OSError, TimeoutError among them, or ItemError."""


class TcpNetwork:
    async def connect(self, host: str, port: int, seconds: float) -> TcpStream:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(seconds):
            _, stream = await loop.create_connection(TcpStream, host, port)
        return stream


class TcpStream(asyncio.Protocol):
    """One connection: the protocol that the loop calls, and the stream that is read."""

    def __init__(self) -> None:
        self._transport: Any = None
        self._unread = bytearray()
        self._is_over = False
        self._failure: Exception | None = None
        self._readable: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._is_full = False  # whether what is to be sent waits for the server
        self._arrivals = select.poll()

    async def start_tls(self, context: ssl.SSLContext, name: str, seconds: float) -> None:
        """Starts TLS; raises OSError, TimeoutError and SSLError among them; the stream is closed
        then."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(seconds):
                self._transport = await loop.start_tls(
                    self._transport, self, context, server_hostname=name
                )
        except BaseException:
            self.close()
            raise

    async def read(self, most: int) -> bytes:
        """Returns at least one byte and at most `most`; none at the end. Raises OSError."""
        while not self._unread and not self._is_over:
            self._readable = asyncio.get_running_loop().create_future()
            await self._readable
        if self._failure is not None:
            raise ConnectionError(str(self._failure)) from self._failure
        was_full = len(self._unread) > _MOST_UNREAD
        data = bytes(self._unread[:most])
        del self._unread[:most]
        if was_full and len(self._unread) <= _MOST_UNREAD and not self._is_over:
            self._transport.resume_reading()
        return data

    async def write(self, data: bytes) -> None:
        """Sends the data; raises OSError."""
        if self._transport.is_closing():
            raise ConnectionError(str(self._failure or "the connection is closed"))
        self._transport.write(data)
        while self._is_full:
            self._writable = asyncio.get_running_loop().create_future()
            await self._writable
        if self._failure is not None:
            raise ConnectionError(str(self._failure)) from self._failure

    @property
    def is_quiet(self) -> bool:
        """Whether nothing arrived that was not requested, not even the end."""
        return not (self._is_over or self._unread or self._arrivals.poll(0))

    def close(self) -> None:
        """Closes the stream at once, whatever the other side still has to say."""
        self._transport.abort()

    # Called by the loop.

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._arrivals.register(transport.get_extra_info("socket").fileno(), select.POLLIN)

    def data_received(self, data: bytes) -> None:
        self._unread += data
        if len(self._unread) > _MOST_UNREAD:
            self._transport.pause_reading()
        _wake(self._readable)

    def eof_received(self) -> None:
        self._is_over = True
        _wake(self._readable)

    def connection_lost(self, error: Exception | None) -> None:
        self._is_over, self._is_full, self._failure = True, False, error
        _wake(self._readable)
        _wake(self._writable)

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        _wake(self._writable)


def _wake(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
