"""Serves files of the file store: streamed, with ranges, never held in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import StreamingResponse
from starlette.responses import Response

from holdfast.files import FileStore


@dataclass(frozen=True, slots=True)
class Download:
    key: str
    size: int
    sha256: str
    media_type: str
    name: str | None = None  # the name under which a browser saves it
    cache: str = "private, no-cache"


async def download_response(store: FileStore, file: Download, request: Request) -> Response:
    """Returns the whole file, or the one range that was requested (RFC 9110).

    The first bytes are read before the response begins, so that a missing file is not a broken
    download."""
    headers = _headers(file)
    span = _span(request, file, headers["ETag"])
    if span is None:
        return Response(status_code=416, headers={"Content-Range": f"bytes */{file.size}"})
    start, end = span
    partial = (start, end) != (0, file.size)
    if partial:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{file.size}"
    headers["Content-Length"] = str(end - start)
    blocks = store.stream(file.key, start, end)
    first = await anext(blocks, b"")
    return StreamingResponse(
        _continued(first, blocks), 206 if partial else 200, headers, media_type=file.media_type
    )


def _headers(file: Download) -> dict[str, str]:
    headers = {
        "ETag": f'"{file.sha256}"',
        "Accept-Ranges": "bytes",
        "Cache-Control": file.cache,
    }
    if file.name is not None:
        plain = file.name.isascii() and file.name.isprintable() and '"' not in file.name
        named = f'filename="{file.name}"' if plain else f"filename*=utf-8''{quote(file.name)}"
        headers["Content-Disposition"] = f"attachment; {named}"
    return headers


async def _continued(first: bytes, blocks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for block in blocks:
        yield block


def _span(request: Request, file: Download, etag: str) -> tuple[int, int] | None:
    """Returns the bytes to send; None if none of the requested ones exist.

    A range that is not one of bytes, or is of another file, is ignored, as the standard says."""
    whole = (0, file.size)
    text = request.headers.get("range", "")
    unit, _, numbers = text.partition("=")
    first, dash, last = numbers.strip().partition("-")
    if unit != "bytes" or not dash or request.headers.get("if-range", etag) != etag:
        return whole
    if not all(_is_number(number) for number in (first, last)) or not first + last:
        return whole
    if not first:  # the last bytes
        start, end = max(0, file.size - int(last)), file.size
    else:
        start, end = int(first), min(file.size, int(last or file.size) + 1)
        if last and int(last) < start:
            return whole
    return (start, end) if start < end else None


def _is_number(text: str) -> bool:
    return not text or (text.isascii() and text.isdecimal() and len(text) < 16)
