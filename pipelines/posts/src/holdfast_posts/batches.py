"""Reads a batch from the object store: a JSON array, or an object with `items`; perhaps zstd.

It is read in pieces and never becomes larger than its limit, packed or not. One item that cannot be
read harms only itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable
from dataclasses import dataclass
from typing import Any

import orjson
import zstandard

from holdfast_client import json_depth
from holdfast_client.json_depth import nests_deeper_than

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_WINDOW_BYTES = 128 * 1024 * 1024
_EXCERPT = 200
DEEPEST = json_depth.DEEPEST - 5  # because it becomes part of a record
_AT_ONCE_BYTES = 1024 * 1024  # larger ones are read in a thread
_MOST_GROWTH = 5  # of JSON that is read and written again: 1e15 becomes 1000000000000000.0
EXPECTED_SIZES = {"tiktok": 50}
OTHER_SIZE = 20


class BadBatch(Exception):
    """Raised for a batch that no further attempt can read."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


@dataclass(frozen=True, slots=True)
class BatchLimits:
    max_bytes: int  # unpacked
    max_items: int
    max_item_bytes: int


@dataclass(frozen=True, slots=True)
class BadItem:
    """An item that cannot be read."""

    reason: str
    excerpt: str


def expected_size(platform: str | None) -> int:
    return EXPECTED_SIZES.get(platform or "", OTHER_SIZE)


async def read_batch(blocks: AsyncIterable[bytes], limits: BatchLimits) -> list[Any]:
    """Returns the items, with a BadItem in the place of each that cannot be read."""
    packed = bytearray()
    async for block in blocks:
        packed += block
        if len(packed) > limits.max_bytes:
            raise _too_large(limits)
    if len(packed) <= _AT_ONCE_BYTES:
        return items_of(unpacked(bytes(packed), limits), limits)
    return await asyncio.to_thread(lambda: items_of(unpacked(bytes(packed), limits), limits))


def unpacked(packed: bytes, limits: BatchLimits) -> bytes:
    """Returns what zstd data unpacks to, recognised by its first bytes; other data as it is.

    Data that is cut off is not complete JSON."""
    if not packed.startswith(ZSTD_MAGIC):
        return packed
    unpacker = zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES)
    try:
        with unpacker.stream_reader(packed, read_across_frames=True) as reader:
            content = reader.read(limits.max_bytes + 1)
    except zstandard.ZstdError as error:
        raise BadBatch("BATCH_CORRUPT", f"its zstd data is damaged: {error}") from error
    if len(content) > limits.max_bytes:
        raise _too_large(limits)
    return content


def _too_large(limits: BatchLimits) -> BadBatch:
    return BadBatch("BATCH_TOO_LARGE", f"it is larger than {limits.max_bytes:,} bytes")


def items_of(content: bytes, limits: BatchLimits) -> list[Any]:
    if not content.strip():
        raise BadBatch("BATCH_CORRUPT", "it is empty: not even an empty array")
    try:
        items = _array(orjson.loads(content))
    except orjson.JSONDecodeError as error:
        return _one_by_one(content, limits, str(error))
    if len(items) > limits.max_items:
        raise BadBatch("BATCH_TOO_LARGE", f"it has {len(items):,} items")
    # Depth and size are checked one by one only if the whole could exceed them.
    is_small = len(content) * _MOST_GROWTH <= limits.max_item_bytes
    if is_small and not nests_deeper_than(items, DEEPEST):
        return items
    return [_checked(item, limits) for item in items]


def _array(value: Any) -> list[Any]:
    """Returns the array, or `items` of an object; an object without it is one post, as in legacy
    files."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        items = value.get("items", [value] if "meta" in value else None)
        if isinstance(items, list):
            return items
    raise BadBatch("BATCH_CORRUPT", f"it is {type(value).__name__} without items")


def _checked(item: Any, limits: BatchLimits) -> Any:
    if nests_deeper_than(item, DEEPEST):
        return BadItem(f"it nests deeper than {DEEPEST} levels", "")
    encoded = orjson.dumps(item)
    if len(encoded) > limits.max_item_bytes:
        reason = f"it has {len(encoded):,} bytes, more than {limits.max_item_bytes:,}"
        return BadItem(reason, excerpt_of(encoded))
    return item


def _one_by_one(content: bytes, limits: BatchLimits, reason: str) -> list[Any]:
    """Returns the items of an array that cannot be read as a whole, because one of them is
    broken."""
    spans = item_spans(content, limits.max_items)
    if spans is None:
        raise BadBatch("BATCH_CORRUPT", f"it is not JSON: {reason}")
    items: list[Any] = []
    for start, end in spans:
        piece = content[start:end]
        try:
            items.append(_checked(orjson.loads(piece), limits))
        except orjson.JSONDecodeError as error:
            items.append(BadItem(f"it is not JSON: {error}"[:_EXCERPT], excerpt_of(piece)))
    bad = sum(isinstance(item, BadItem) for item in items)
    # If none is broken, what follows the array is: perhaps more items.
    if bad in (0, len(items)):
        raise BadBatch("BATCH_CORRUPT", f"it is not JSON: {reason}")
    return items


def excerpt_of(encoded: bytes) -> str:
    return encoded[:_EXCERPT].decode("utf-8", "replace").replace("\x00", "")


_QUOTE, _ESCAPE, _COMMA = b'"\\,'
_OPENING, _CLOSING = frozenset(b"[{"), frozenset(b"]}")


def item_spans(content: bytes, most: int) -> list[tuple[int, int]] | None:
    """Returns where the elements of the array are, by its brackets, strings and commas alone; None
    if it does not end, or if something other than the rest of an object follows it."""
    begin = content.find(b"[")
    head = content[:begin].strip()
    if begin < 0 or head not in (b"", b'{"items":', b'{"items" :'):
        return None
    spans: list[tuple[int, int]] = []
    depth, start, at = 0, begin + 1, begin + 1
    while at < len(content):
        byte = content[at]
        if byte == _QUOTE:
            at = _string_end(content, at)
        elif byte in _OPENING:
            depth += 1
        elif depth and byte in _CLOSING:
            depth -= 1
        elif not depth and (byte == _COMMA or byte in _CLOSING):
            spans.append((start, at))
            start = at + 1
            if len(spans) > most:
                raise BadBatch("BATCH_TOO_LARGE", f"it has more than {most:,} items")
            if byte in _CLOSING:
                allowed = (b"}", b",") if head else (b"",)
                return spans if content[at + 1 :].lstrip()[:1] in allowed else None
        at += 1
    return None


def _string_end(content: bytes, at: int) -> int:
    """Returns the position of the closing quote of the string that begins at `at`, or the end."""
    end = at + 1
    while (end := content.find(b'"', end)) >= 0:
        escapes = end
        while content[escapes - 1] == _ESCAPE:
            escapes -= 1
        if (end - escapes) % 2 == 0:
            return end
        end += 1
    return len(content)
