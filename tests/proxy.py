"""A TCP proxy that fails on demand: it sits between a program and a server it needs."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from tests.ports import free_port

CHUNK_BYTES = 64 * 1024


class Proxy:
    """Passes bytes to the server of `url` and back, until it has to fail.

    It lives in the test's event loop: a test that waits for a subprocess has to wait with
    `asyncio.to_thread`, or nothing passes.
    """

    def __init__(self, url: str) -> None:
        self._target = urlsplit(url)
        self._server: asyncio.Server | None = None
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._connections: set[asyncio.Task[None]] = set()
        self.port = free_port()
        self.accepted_count = 0
        self.bytes_per_second: float | None = None  # towards the server; None: as fast as it goes

    async def __aenter__(self) -> Self:
        await self.accept()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def url(self) -> str:
        """The server's URL with the proxy in its place."""
        user, at, _ = self._target.netloc.rpartition("@")
        return self._target._replace(netloc=f"{user}{at}127.0.0.1:{self.port}").geturl()

    async def accept(self) -> None:
        """Takes connections; after `refuse`, again on the same port."""
        if self._server is None:
            self._server = await asyncio.start_server(self._connect, "127.0.0.1", self.port)

    async def refuse(self) -> None:
        """Cuts every connection and refuses new ones, like a server that is down."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        await self.cut()
        if server is not None:
            await server.wait_closed()

    async def cut(self) -> None:
        """Resets every open connection; new ones are taken."""
        for writer in self._writers:
            _reset(writer)
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def stall(self) -> None:
        """Holds every byte back without closing anything, like a network that swallows packets."""
        self._flowing.clear()

    def flow(self) -> None:
        """Ends a stall; what was held back arrives."""
        self._flowing.set()

    async def close(self) -> None:
        await self.refuse()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        self._writers.add(writer)
        self.accepted_count += 1
        try:
            with contextlib.suppress(asyncio.CancelledError):  # it was cut
                await self._pass_on(reader, writer)
        finally:
            await self._hang_up(writer)
            self._connections.discard(task)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection(self._target.hostname, self._target.port)
        except OSError:
            return
        self._writers.add(back)
        pumps = [
            asyncio.create_task(self._pump(reader, back, to_server=True)),
            asyncio.create_task(self._pump(there, writer)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            await self._hang_up(back)

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, to_server: bool = False
    ) -> None:
        try:
            while data := await reader.read(CHUNK_BYTES):
                await self._flowing.wait()
                if to_server and self.bytes_per_second is not None:
                    await asyncio.sleep(len(data) / self.bytes_per_second)
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            return

    async def _hang_up(self, writer: asyncio.StreamWriter) -> None:
        """Closes a connection after what was written to it has left."""
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        self._writers.discard(writer)


def _reset(writer: asyncio.StreamWriter) -> None:
    linger_for_zero_seconds = struct.pack("ii", 1, 0)
    connection = writer.get_extra_info("socket")
    if connection.fileno() < 0:
        return  # it has been closed from the other end
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_for_zero_seconds)
    writer.transport.abort()
