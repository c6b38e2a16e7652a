"""Multipart forms with a file: streamed to disk as they arrive, never held in memory."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import orjson
from fastapi import Request
from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header

from holdfast.errors import TooLarge
from holdfast.features.library.file_imports import Received
from holdfast.files import FileAccess
from holdfast.server.problems import Malformed

_BLOCK_BYTES = 1 << 20
_FIELD_BYTES = 64 * 1024
_FIELDS = 50
_LONGEST_NAME = 150
_NO_FILE = "the form has no file"


@dataclass(slots=True)
class Form:
    fields: dict[str, str] = field(default_factory=dict)
    file: Received | None = None

    @property
    def content(self) -> str:
        """A hash that is the same for forms with the same content, however they are encoded."""
        file = None if self.file is None else [self.file.name, self.file.sha256]
        text = orjson.dumps([self.fields, file], option=orjson.OPT_SORT_KEYS)
        return hashlib.sha256(text).hexdigest()


class _FileSink:
    """Writes and hashes a file in a thread, block by block."""

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
                "Split the file, or raise HOLDFAST_MAX_UPLOAD_BYTES.",
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
async def received_form(request: Request, access: FileAccess) -> AsyncIterator[Form]:
    """Receives a multipart form: its fields, and its one file in a temporary folder."""
    async with access.local.passing() as folder:
        form = await _Reader(request, folder, access.max_bytes).read()
        request.state.content = form.content
        yield form


class _Reader:
    """Turns the parser's callbacks into steps that can be awaited."""

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
            raise Malformed("the form has no boundary", "Let your HTTP client encode the form.")
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
            raise Malformed("the form is incomplete", "Send it again.")
        return self._form

    def _callbacks(self) -> Any:
        def record(step: str) -> Any:
            return lambda *_: self._steps.append((step, b""))

        def record_data(step: str) -> Any:
            return lambda data, start, end: self._steps.append((step, bytes(data[start:end])))

        return {
            "on_part_begin": record("part"),
            "on_part_data": record_data("data"),
            "on_part_end": record("part_end"),
            "on_header_field": record_data("header"),
            "on_header_value": record_data("value"),
            "on_headers_finished": record("headers"),
            "on_end": record("end"),
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
                raise Malformed("a header in the form is too long")
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
            raise TooLarge(f"a field in the form is larger than {_FIELD_BYTES:,} bytes")

    async def _part_end(self) -> None:
        if self._sink is not None:
            self._form.file = await self._sink.close()
            self._sink = None
        elif self._field is not None:
            self._form.fields[self._field] = self._text.decode("utf-8", "replace")
        self._field = None


def require_file(form: Form) -> Received:
    if form.file is None:
        raise Malformed(_NO_FILE, "Send it as multipart/form-data, as the field `file`.")
    return form.file


def safe_name(sent: str) -> str:
    """Returns the last part of a file's name, printable and short enough for every file system."""
    last = re.split(r"[/\\]", sent)[-1]
    name = "".join(letter for letter in last if letter.isprintable()).strip().lstrip(".")
    stem, dot, suffix = name.rpartition(".")
    if len(name) > _LONGEST_NAME:
        name = f"{stem[: _LONGEST_NAME - 20]}{dot}{suffix[:10]}"
    while len(name.encode("utf-8", "ignore")) > _LONGEST_NAME:
        name = name[1:]
    return name.encode("utf-8", "ignore").decode() or "upload"
