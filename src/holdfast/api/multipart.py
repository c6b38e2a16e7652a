"""Bodies with a file in them: read as they come, the file straight to disk, never in memory."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import orjson
from fastapi import Request
from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header

from holdfast.api.problems import Malformed, TooLarge
from holdfast.file_store import place_of

#: How the name of a folder begins in which a file arrives until it is whole.
ARRIVING = ".arriving-"
_BLOCK_BYTES = 1 << 20
_FIELD_BYTES = 64 * 1024
_FIELDS = 50
_LONGEST_NAME = 150
_NO_FILE = "the form has no file"


@dataclass(frozen=True, slots=True)
class Received:
    """A file that arrived whole, still under a passing name."""

    name: str
    path: Path
    size: int
    sha256: str

    def keep(self, folder: Path) -> Path:
        """Puts it where its content says, so that the same file is kept once."""
        place = place_of(folder, self.sha256, self.name)
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path.replace(place)
        return place


@dataclass(slots=True)
class Form:
    fields: dict[str, str] = field(default_factory=dict)
    file: Received | None = None

    @property
    def content(self) -> str:
        """The same for forms that say the same, however they are cut into parts."""
        file = None if self.file is None else [self.file.name, self.file.sha256]
        told = orjson.dumps([self.fields, file], option=orjson.OPT_SORT_KEYS)
        return hashlib.sha256(told).hexdigest()


class _FileSink:
    """Writes and hashes in a thread, a block at a time."""

    def __init__(self, name: str, file: IO[bytes], path: Path, max_bytes: int) -> None:
        self._name = name
        self._file = file
        self._path = path
        self._max_bytes = max_bytes
        self._digest = hashlib.sha256()
        self._buffer = bytearray()
        self._size = 0

    async def write(self, data: bytes) -> None:
        self._buffer += data
        self._size += len(data)
        if self._size > self._max_bytes:
            raise TooLarge(
                f"the file is larger than {self._max_bytes:,} bytes",
                "HOLDFAST_MAX_UPLOAD_BYTES sets the limit; or split the file.",
            )
        if len(self._buffer) >= _BLOCK_BYTES:
            await self._flush()

    async def close(self) -> Received:
        await self._flush()
        await asyncio.to_thread(self._to_disk)
        return Received(self._name, self._path, self._size, self._digest.hexdigest())

    async def _flush(self) -> None:
        block, self._buffer = bytes(self._buffer), bytearray()
        await asyncio.to_thread(self._write_block, block)

    def _write_block(self, block: bytes) -> None:
        self._digest.update(block)
        self._file.write(block)

    def _to_disk(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())


@asynccontextmanager
async def received_form(request: Request, folder: Path, max_bytes: int) -> AsyncIterator[Form]:
    """The fields of a multipart form, and its one file in a passing place."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(prefix=ARRIVING, dir=folder) as passing:
        form = await _Reader(request, Path(passing), max_bytes).read()
        request.state.content = form.content
        yield form


class _Reader:
    """Turns the parser's callbacks into steps that may wait."""

    def __init__(self, request: Request, folder: Path, max_bytes: int) -> None:
        self._request = request
        self._folder = folder
        self._max_bytes = max_bytes
        self._form = Form()
        self._steps: list[tuple[str, bytes]] = []
        self._header = b""
        self._disposition = b""
        self._field: str | None = None
        self._text = bytearray()
        self._sink: _FileSink | None = None
        self._file: IO[bytes] | None = None
        self._ended = False

    async def read(self) -> Form:
        _, options = parse_options_header(self._request.headers.get("content-type", ""))
        boundary = options.get(b"boundary")
        if not boundary:
            raise Malformed("the form has no boundary", "Let your HTTP client make the form.")
        try:
            parser = MultipartParser(boundary, self._callbacks())
            async for chunk in self._request.stream():
                parser.write(chunk)
                await self._take_steps()
            parser.finalize()
        except MultipartParseError as error:
            raise Malformed(f"the form cannot be read: {error}") from error
        finally:
            if self._file is not None:
                self._file.close()
        if not self._ended:
            raise Malformed("the form ends too early", "Send it again.")
        return self._form

    def _callbacks(self) -> Any:
        def noted(step: str) -> Any:
            return lambda *_: self._steps.append((step, b""))

        def sliced(step: str) -> Any:
            return lambda data, start, end: self._steps.append((step, bytes(data[start:end])))

        return {
            "on_part_begin": noted("part"),
            "on_part_data": sliced("data"),
            "on_part_end": noted("part_end"),
            "on_header_field": sliced("header"),
            "on_header_value": sliced("value"),
            "on_headers_finished": noted("headers"),
            "on_end": noted("end"),
        }

    async def _take_steps(self) -> None:
        steps, self._steps = self._steps, []
        for step, data in steps:
            if step == "data":
                await self._data(data)
            elif step == "part_end":
                await self._part_end()
            else:
                self._head(step, data)

    def _head(self, step: str, data: bytes) -> None:
        if step == "part":
            self._header = self._disposition = b""
        elif step == "header":
            self._header += data
        elif step == "value":
            if self._header.lower() == b"content-disposition":
                self._disposition += data
            if len(self._header) + len(self._disposition) > _FIELD_BYTES:
                raise Malformed("a header of the form is too long")
            self._header = self._header if self._disposition else b""
        elif step == "headers":
            self._begin_part()
        elif step == "end":
            self._ended = True

    def _begin_part(self) -> None:
        _, options = parse_options_header(self._disposition)
        self._text = bytearray()
        self._field = options.get(b"name", b"").decode("utf-8", "replace")
        if b"filename" not in options:
            if len(self._form.fields) >= _FIELDS:
                raise Malformed(f"the form has more than {_FIELDS} fields")
            return
        if self._file is not None:
            raise Malformed("the form has more than one file", "Send one file at a time.")
        name = safe_name(options[b"filename"].decode("utf-8", "replace"))
        path = self._folder / "file"
        self._file = path.open("wb")
        self._sink = _FileSink(name, self._file, path, self._max_bytes)

    async def _data(self, data: bytes) -> None:
        if self._sink is not None:
            await self._sink.write(data)
            return
        self._text += data
        if len(self._text) > _FIELD_BYTES:
            raise TooLarge(f"a field of the form is larger than {_FIELD_BYTES:,} bytes")

    async def _part_end(self) -> None:
        if self._sink is not None:
            self._form.file = await self._sink.close()
            self._sink = None
        elif self._field is not None:
            self._form.fields[self._field] = self._text.decode("utf-8", "replace")
        self._field = None


def the_file(form: Form) -> Received:
    if form.file is None:
        raise Malformed(_NO_FILE, "Send it as multipart/form-data, as the field `file`.")
    return form.file


def safe_name(given: str) -> str:
    """A file's name as people know it, without anything that leads elsewhere."""
    last = re.split(r"[/\\]", given)[-1]
    kept = "".join(each for each in last if each.isprintable()).strip().lstrip(".")
    stem, dot, suffix = kept.rpartition(".")
    if len(kept) > _LONGEST_NAME:
        kept = f"{stem[: _LONGEST_NAME - 20]}{dot}{suffix[:10]}"
    while len(kept.encode("utf-8", "ignore")) > _LONGEST_NAME:
        kept = kept[1:]
    return kept.encode("utf-8", "ignore").decode() or "upload"
