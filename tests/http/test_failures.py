"""Broken, slow, huge and wrongly packed replies, from a real server on loopback."""

from __future__ import annotations

import asyncio
import gc
import gzip
import itertools
import socket
import zlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from holdfast.errors import ERROR_CODES, ItemError
from holdfast.http import HttpClient, HttpOptions
from tests.http_client import RecordingGates, http_client
from tests.world import Answer, Raw, Request, World, json_answer, redirect, text_answer

OPEN = HttpOptions(
    user_agent="holdfast-test/1 (test@example.com)",
    timeout_seconds=10,
    connect_timeout_seconds=5,
    max_bytes=1_000_000,
    obey_robots=False,
    allow_private_addresses=True,
)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with World() as world:
        yield world


@pytest.fixture
def gates() -> RecordingGates:
    return RecordingGates()


@pytest.fixture
async def client(gates: RecordingGates) -> AsyncIterator[HttpClient]:
    async with http_client(OPEN, gates) as client:
        yield client


async def failure(awaitable: Any) -> ItemError:
    with pytest.raises(ItemError) as caught:
        await awaitable
    assert caught.value.code in ERROR_CODES
    return caught.value


async def test_header_that_cannot_be_sent_is_not_shown(client: HttpClient, world: World) -> None:
    """It may be a key with the line end of the file that it was in."""
    error = await failure(client.get(world.url("/"), headers={"Authorization": "s3cret\n"}))
    assert "Illegal header value" in str(error) and "s3cret" not in str(error)
    assert error.__cause__ is None, "which quotes it"


# A network that fails


async def test_a_name_that_does_not_exist_is_a_dns_error(client: HttpClient) -> None:
    assert (await failure(client.get("http://does-not-exist.invalid/"))).code == "DNS_ERROR"


async def test_a_name_that_cannot_exist_is_a_dns_error(client: HttpClient) -> None:
    error = await failure(client.get(f"http://{'a' * 70}.example.invalid/"))
    assert error.code in ("DNS_ERROR", "INVALID_URL")


async def test_a_closed_port_is_connection_refused(client: HttpClient) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        error = await failure(client.get(f"http://127.0.0.1:{port}/"))
    assert error.code == "CONNECTION_REFUSED"


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [b"HTT"],
        [b"not http at all\r\n\r\n"],
        [HEAD],
        [HEAD + b'Content-Length: 100\r\n\r\n{"half":'],
        [CHUNKED + b"5\r\n12345\r\n"],
        [CHUNKED + b"zzz\r\n12345\r\n0\r\n\r\n"],
        [CHUNKED + b"5\r\n1234567890\r\n0\r\n\r\n"],
        [HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n123456"],
        [HEAD + b"X-Huge: " + b"x" * 300_000 + b"\r\n\r\n"],
    ],
    ids=[
        "nothing",
        "three bytes",
        "garbage",
        "half a head",
        "the body is incomplete",
        "half of the chunks",
        "chunk size is no number",
        "chunk longer than said",
        "two lengths",
        "huge header",
    ],
)
async def test_a_broken_reply_is_a_network_error(
    client: HttpClient, gates: RecordingGates, world: World, parts: list[bytes]
) -> None:
    world.on("/x", Raw(parts))
    world.on("/y", json_answer(1))
    assert (await failure(client.get(world.url("/x")))).code == "NETWORK_ERROR"
    assert gates.in_flight == 0
    assert (await client.get(world.url("/y"))).ok


@pytest.mark.parametrize(
    "beginning", [[], [HEAD], [HEAD + b"Content-Length: 100000\r\n\r\n"], [CHUNKED]]
)
async def test_slow_bytes_do_not_outlast_the_total_timeout(
    client: HttpClient, world: World, beginning: list[bytes]
) -> None:
    byte = b"1\r\nx\r\n" if beginning == [CHUNKED] else b"x"
    world.on("/x", Raw(itertools.chain(beginning, itertools.cycle([0.01, byte]))))
    error = await failure(client.get(world.url("/x"), timeout=0.2))
    assert error.code == "TIMEOUT"


async def test_the_timeout_covers_all_hops(client: HttpClient, world: World) -> None:
    async def hop(request: Request) -> Answer:
        await asyncio.sleep(0.1)
        return redirect(f"{request.path}x")

    for number in range(1, 12):
        world.on("/" + "x" * number, hop)
    error = await failure(client.get(world.url("/x"), timeout=0.35))
    assert error.code == "TIMEOUT"


# Sizes and codings


async def test_a_body_that_announces_too_much_is_not_read(client: HttpClient, world: World) -> None:
    world.on("/x", Raw([HEAD + b"Content-Length: 1000001\r\n\r\n", 3600.0]))
    assert (await failure(client.get(world.url("/x")))).code == "TOO_LARGE"


async def test_an_endless_body_is_too_large(client: HttpClient, world: World) -> None:
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    world.on("/x", Raw(itertools.chain([CHUNKED], itertools.cycle([chunk]))))
    assert (await failure(client.get(world.url("/x")))).code == "TOO_LARGE"


async def test_a_body_of_just_the_limit_is_taken(client: HttpClient, world: World) -> None:
    world.on("/x", Answer(body=b"x" * 100))
    assert len((await client.get(world.url("/x"), max_bytes=100)).content) == 100
    assert (await failure(client.get(world.url("/x"), max_bytes=99))).code == "TOO_LARGE"


async def test_an_error_page_beyond_the_limit_keeps_its_own_code(
    client: HttpClient, world: World
) -> None:
    world.on("/x", text_answer("x" * 5000, 404))
    assert (await failure(client.get(world.url("/x"), max_bytes=99))).code == "CONTENT_NOT_FOUND"


def compressed(body: bytes, coding: str) -> Answer:
    return Answer(body=body, headers={"Content-Encoding": coding, "Content-Type": "text/plain"})


def raw_deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(body) + packer.flush()


@pytest.mark.parametrize(
    ("body", "coding"),
    [
        (gzip.compress(b"hello", mtime=0), "gzip"),
        (gzip.compress(b"hel", mtime=0) + gzip.compress(b"lo", mtime=0), "x-gzip"),
        (gzip.compress(b"hello", mtime=0) + b"\0" * 10, "GZIP"),
        (zlib.compress(b"hello"), "deflate"),
        (raw_deflate(b"hello"), "deflate"),
        (gzip.compress(zlib.compress(b"hello"), mtime=0), "deflate, gzip"),
        (b"hello", "identity"),
    ],
)
async def test_compressed_bodies_are_unpacked(
    client: HttpClient, world: World, body: bytes, coding: str
) -> None:
    world.on("/x", compressed(body, coding))
    assert (await client.get(world.url("/x"))).text == "hello"


async def test_a_large_compressed_body_is_unpacked(client: HttpClient, world: World) -> None:
    numbers = " ".join(str(number) for number in range(140_000)).encode()
    packed = gzip.compress(numbers, 1, mtime=0)
    assert len(packed) > 256 * 1024
    world.on("/x", compressed(packed, "gzip"))
    assert (await client.get(world.url("/x"))).content == numbers


@pytest.mark.parametrize(
    ("body", "coding"),
    [
        (gzip.compress(b"\0" * 50_000_000, mtime=0), "gzip"),
        (zlib.compress(b"\0" * 50_000_000), "deflate"),
        (gzip.compress(gzip.compress(b"\0" * 500_000_000, 9, mtime=0)), "gzip, gzip"),
        (gzip.compress(b"\0" * 600_000, mtime=0) * 2, "gzip"),
    ],
)
async def test_a_compression_bomb_is_too_large(
    client: HttpClient, world: World, body: bytes, coding: str
) -> None:
    assert len(body) < OPEN.max_bytes
    world.on("/x", compressed(body, coding))
    assert (await failure(client.get(world.url("/x")))).code == "TOO_LARGE"


async def test_half_of_a_compressed_body_is_a_network_error(
    client: HttpClient, world: World
) -> None:
    half = gzip.compress(b"hello" * 1000, mtime=0)[:20]
    world.on("/x", Raw([HEAD + b"Content-Encoding: gzip\r\n\r\n" + half]))
    assert (await failure(client.get(world.url("/x")))).code == "NETWORK_ERROR"


@pytest.mark.parametrize(("body", "coding"), [(b"plain text", "gzip"), (b"anything", "br")])
async def test_a_wrong_coding_is_an_invalid_response(
    client: HttpClient, world: World, body: bytes, coding: str
) -> None:
    world.on("/x", compressed(body, coding))
    assert (await failure(client.get(world.url("/x")))).code == "INVALID_RESPONSE"


async def test_a_head_request_has_no_body_to_unpack(client: HttpClient, world: World) -> None:
    world.on("/x", compressed(gzip.compress(b"hello" * 400_000, mtime=0), "gzip"))
    assert (await client.request("HEAD", world.url("/x"))).content == b""


async def test_cancelling_at_any_moment_loses_no_connection(
    gates: RecordingGates, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Each call is cancelled one turn of the event loop later than the last."""
    world.on("/x", json_answer(["x" * 50_000]))
    async with http_client(replace(OPEN, max_connections=2), gates) as client:
        for turns in range(60):
            call = asyncio.create_task(client.get(world.url("/x")))
            for _ in range(turns):
                await asyncio.sleep(0)
            call.cancel()
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
        replies = await asyncio.gather(*(client.get(world.url("/x")) for _ in range(20)))
    assert all(reply.ok for reply in replies)
    assert gates.in_flight == 0
    gc.collect()
    assert not caplog.records
