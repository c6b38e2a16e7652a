"""Batches in every form: packed, plain, broken, huge; one bad item costs only itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
import zstandard

from holdfast_posts.batches import (
    BadBatch,
    BadItem,
    BatchLimits,
    expected_size,
    item_spans,
    read_batch,
)

LIMITS = BatchLimits(max_bytes=200_000, max_items=100, max_item_bytes=50_000)
ITEMS = [{"meta": {"id": str(number)}, "text": 'quote " and ] and \\'} for number in range(5)]
PLAIN = orjson.dumps(ITEMS)


async def read(content: bytes, block: int = 7, limits: BatchLimits = LIMITS) -> list[Any]:
    async def blocks() -> AsyncIterator[bytes]:
        for at in range(0, len(content), block):
            yield content[at : at + block]

    return await read_batch(blocks(), limits)


@pytest.mark.parametrize(
    "content",
    [
        PLAIN,
        orjson.dumps({"items": ITEMS, "count": 5}),
        zstandard.compress(PLAIN),
        zstandard.compress(PLAIN[:50]) + zstandard.compress(PLAIN[50:]),
    ],
    ids=["array", "object", "zstd", "two frames"],
)
@pytest.mark.parametrize("block", [1, 3, 10_000])
async def test_items_are_read(content: bytes, block: int) -> None:
    assert await read(content, block) == ITEMS


async def test_empty_array_has_no_items() -> None:
    assert await read(b"[]") == []
    assert await read(b'{"items": []}') == []


async def test_single_post_of_a_legacy_file_is_a_batch_of_one() -> None:
    assert await read(orjson.dumps(ITEMS[0])) == [ITEMS[0]]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "BATCH_CORRUPT"),
        (b"  ", "BATCH_CORRUPT"),
        (b"null", "BATCH_CORRUPT"),
        (b"7", "BATCH_CORRUPT"),
        (b'{"items": null}', "BATCH_CORRUPT"),
        (b'{"other": []}', "BATCH_CORRUPT"),
        (b"<html>no such key</html>", "BATCH_CORRUPT"),
        (PLAIN[:-40], "BATCH_CORRUPT"),
        (zstandard.compress(PLAIN)[:-20], "BATCH_CORRUPT"),
        (zstandard.compress(PLAIN)[:6] + b"\xff" * 50, "BATCH_CORRUPT"),
        (b"[" * 100_000, "BATCH_CORRUPT"),
        (PLAIN + PLAIN, "BATCH_CORRUPT"),
        (PLAIN[:-1] + b",nul]" + PLAIN, "BATCH_CORRUPT"),
        (PLAIN + b"...", "BATCH_CORRUPT"),
        (b'{"items":' + PLAIN + b', "count": }', "BATCH_CORRUPT"),
        (b"[" + b"1," * 101 + b"1]", "BATCH_TOO_LARGE"),
        (b" " * 200_001, "BATCH_TOO_LARGE"),
        (zstandard.compress(b" " * 200_001), "BATCH_TOO_LARGE"),
        (zstandard.compress(bytes(50_000_000)), "BATCH_TOO_LARGE"),
    ],
)
async def test_batch_that_cannot_be_read_is_refused(content: bytes, code: str) -> None:
    with pytest.raises(BadBatch) as refused:
        await read(content, 4096)
    assert refused.value.code == code


@pytest.mark.parametrize(
    "bad",
    [b'{"a": tru}', b'{"a" 1}', b"nul", b'{"comments": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
     b'"\\x"', b'{"deep": ' + b'{"a":' * 200 + b"1" + b"}" * 200 + b"}",
     b'{"text": "' + b"x" * 60_000 + b'"}', b"[" + b"1e15," * 8000 + b"1]"],
    ids=["word", "colon", "null", "deep comments", "escape", "deep objects", "large",
         "large when written"],
)  # fmt: skip
async def test_one_bad_item_costs_only_itself(bad: bytes) -> None:
    content = b"[%b,%b,%b]" % (orjson.dumps(ITEMS[0]), bad, orjson.dumps(ITEMS[1]))
    first, middle, last = await read(content, 4096)
    assert (first, last) == (ITEMS[0], ITEMS[1])
    assert isinstance(middle, BadItem)
    assert len(middle.excerpt) <= 200


def test_spans_are_those_of_the_elements() -> None:
    spans = item_spans(PLAIN, 10) or []
    assert [orjson.loads(PLAIN[start:end]) for start, end in spans] == ITEMS


def test_expected_sizes() -> None:
    assert [expected_size(name) for name in ("tiktok", "youtube", "x", None)] == [50, 20, 20, 20]
