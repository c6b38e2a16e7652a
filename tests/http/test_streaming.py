"""A reply that is handed on part by part: decoded, within its limit, and never in silence cut."""

from __future__ import annotations

import gzip
import zlib

import pytest

from holdfast.errors import ItemError
from holdfast.http import HttpOptions
from tests.http_client import http_client
from tests.world import Answer, World

BODY = bytes(range(256)) * 4096
CODED = {
    "plain": ({}, BODY),
    "gzip": ({"Content-Encoding": "gzip"}, gzip.compress(BODY)),
    "two members": (
        {"Content-Encoding": "gzip"}, gzip.compress(BODY[:999]) + gzip.compress(BODY[999:]),
    ),
    "padded": ({"Content-Encoding": "gzip"}, gzip.compress(BODY) + b"\0" * 64),
    "deflate": ({"Content-Encoding": "deflate"}, zlib.compress(BODY)),
}  # fmt: skip


async def streamed(answer: Answer, **options: object) -> tuple[int, bytes, bytes]:
    """Status, what was handed on, and what the reply has itself."""
    parts: list[bytes] = []
    async with World() as world:
        world.on("/a", answer)
        settings = HttpOptions(obey_robots=False, allow_private_addresses=True)
        async with http_client(settings) as client:
            reply = await client.get(
                world.url("/a"), into=parts.append, raise_for_status=False, **options
            )
    return reply.status, b"".join(parts), reply.content


@pytest.mark.parametrize("name", CODED)
async def test_body_is_handed_on_decoded(name: str) -> None:
    headers, body = CODED[name]
    assert await streamed(Answer(200, body, headers)) == (200, BODY, b"")


async def test_body_of_an_error_stays_with_the_reply() -> None:
    assert await streamed(Answer(404, b"nothing here")) == (404, b"", b"nothing here")


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (Answer(200, gzip.compress(BODY)[:-20], {"Content-Encoding": "gzip"}), "NETWORK_ERROR"),
        (Answer(200, b"\x1f\x8bnot gzip", {"Content-Encoding": "gzip"}), "INVALID_RESPONSE"),
        (Answer(200, BODY, {"Content-Encoding": "br"}), "INVALID_RESPONSE"),
    ],
)
async def test_damaged_body_is_an_error(answer: Answer, code: str) -> None:
    with pytest.raises(ItemError, match=code):
        await streamed(answer)


async def test_small_body_that_unpacks_to_too_much_is_refused() -> None:
    bomb = Answer(200, gzip.compress(bytes(5_000_000)), {"Content-Encoding": "gzip"})
    with pytest.raises(ItemError, match="TOO_LARGE"):
        await streamed(bomb, max_bytes=1_000_000)
