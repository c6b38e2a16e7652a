"""Connections on the loop's own transports: TLS, large bodies both ways, and ends of every kind."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from holdfast.http.streams import TcpNetwork, TcpStream

CERTIFICATE = Path(__file__).parent / "self_signed.pem"
MEGABYTE = b"x" * (1 << 20)
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def connected(talk: Talk, tls: bool = False) -> AsyncIterator[TcpStream]:
    """A stream to a server that talks like this, once."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer)
        finally:
            writer.close()

    context = None
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    async with server:
        stream = await TcpNetwork().connect("127.0.0.1", port, 10)
        try:
            async with asyncio.timeout(30):
                yield stream
        finally:
            stream.close()


async def read_all(stream: TcpStream) -> bytes:
    parts = []
    while part := await stream.read(65536):
        assert len(part) <= 65536
        parts.append(part)
    return b"".join(parts)


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """All that comes, once it is there, and then the end."""
    writer.write(await reader.readexactly(4 * len(MEGABYTE)))
    await writer.drain()


@pytest.mark.parametrize("tls", [False, True])
async def test_large_bodies_go_both_ways_and_end(tls: bool) -> None:
    async with connected(echo, tls) as stream:
        if tls:
            trusted = ssl.create_default_context(cafile=str(CERTIFICATE))
            trusted.check_hostname = False
            await stream.start_tls(trusted, "shop.example", 10)  # then tickets may come
        else:
            assert stream.is_quiet
        await stream.write(4 * MEGABYTE)
        assert await read_all(stream) == 4 * MEGABYTE
        assert not stream.is_quiet


async def test_server_waits_while_nobody_reads() -> None:
    sent = asyncio.Event()

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(64 * MEGABYTE)
        await writer.drain()
        sent.set()

    async with connected(pour) as stream:
        assert await stream.read(10) == b"x" * 10
        # It reads no more than the loop hands over at once after its limit.
        assert len(stream._unread) < len(MEGABYTE) and not sent.is_set()
        assert len(await read_all(stream)) == 64 * len(MEGABYTE) - 10
        assert sent.is_set()


async def test_connection_that_was_reset_is_an_error() -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

    async with connected(reset) as stream:
        await stream.write(b"x")
        with pytest.raises(ConnectionError):
            await stream.read(10)
        with pytest.raises(ConnectionError):
            await stream.write(b"x")


async def test_server_that_is_silent_about_tls_is_given_up() -> None:
    async def nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with connected(nothing) as stream:
        with pytest.raises(TimeoutError):
            await stream.start_tls(ssl.create_default_context(), "shop.example", 0.01)
        with pytest.raises(ConnectionError):
            await stream.write(b"x")
