"""Implements `ctx.files` and `ctx.file`: the files of a pipeline, and uploaded images."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from holdfast.errors import Failed, FilesGone, GateWait, InputError, ItemError, NotThere, TooLarge
from holdfast.files import FileAccess
from holdfast.files.contract import (
    checked_key,
    checked_prefix,
    file_blocks,
    read_all,
    stream_to,
)
from holdfast.files.local import copied_size
from holdfast.kernel.worker.threads import blocking_context
from holdfast.model import Job
from holdfast.sources.image_archives import HEADER_BYTES, Entry, content_start, entry_of, unpacked
from holdfast.stored_files import (
    READ_BYTES,
    UPLOADS,
    Content,
    FileInfo,
    PipelineFiles,
    Written,
    files_of_pipeline,
)

_FILES_SECONDS = 5.0


@contextmanager
def _for_items(key: str) -> Iterator[None]:
    """Translates errors; without the file store, the item gives up its place uncharged: nothing is
    wrong with it."""
    try:
        yield
    except FilesGone as gone:
        raise GateWait("files", _FILES_SECONDS, gone.message) from gone
    except NotThere:
        raise FileNotFoundError(f"there is no file {key!r}") from None
    except TooLarge as error:
        raise ItemError("TOO_LARGE", f"{key}: {error.message}") from None
    except InputError as error:
        raise ItemError("STORAGE_ERROR", error.message) from None


class OwnFiles:
    """The files of one pipeline. Their keys are relative to its own prefix."""

    def __init__(self, files: FileAccess, pipeline: str) -> None:
        self._files = files
        self._store = files.store
        self._prefix = files_of_pipeline(pipeline)

    async def put(self, key: str, content: Content, *, if_absent: bool = False) -> Written | None:
        # A copy, not a link: the pipeline may continue to write to its file.
        blocks = file_blocks(content) if isinstance(content, Path) else content
        with _for_items(key):
            written = await self._store.put(
                self._key(key), blocks, max_bytes=self._files.max_bytes, if_absent=if_absent
            )
        return written and Written(key, written.size, written.sha256)

    async def read(
        self, key: str, *, max_bytes: int = READ_BYTES, sha256: str | None = None
    ) -> bytes:
        with _for_items(key):
            return await read_all(self._store, self._key(key), max_bytes=max_bytes, sha256=sha256)

    async def stream(
        self, key: str, start: int = 0, end: int | None = None
    ) -> AsyncIterator[bytes]:
        with _for_items(key):
            async for block in self._store.stream(self._key(key), start, end):
                yield block

    @asynccontextmanager
    async def local(self, key: str, *, sha256: str | None = None) -> AsyncIterator[Path]:
        name = PurePosixPath(checked_key(key)).name
        with _for_items(key):
            async with _own_copy(self._files, self._key(key), name, sha256) as path:
                yield path

    async def find(self, key: str) -> FileInfo | None:
        with _for_items(key):
            return self._shown(await self._store.find(self._key(key)))

    async def list(self, prefix: str = "") -> AsyncIterator[FileInfo]:
        with _for_items(prefix):
            async for info in self._store.list(self._prefix + checked_prefix(prefix)):
                yield FileInfo(info.key.removeprefix(self._prefix), info.size, info.modified_at)

    async def delete(self, key: str) -> None:
        with _for_items(key):
            await self._store.delete(self._key(key))

    def _key(self, key: str) -> str:
        return self._prefix + checked_key(key)

    def _shown(self, info: FileInfo | None) -> FileInfo | None:
        return info and FileInfo(info.key.removeprefix(self._prefix), info.size, info.modified_at)


class BlockingFiles:
    """`ctx.files` for a function that runs in a thread: the same calls without `await`."""

    def __init__(self, files: PipelineFiles, loop: asyncio.AbstractEventLoop) -> None:
        self._files = files
        self._loop = loop

    def put(self, key: str, content: bytes | Path, *, if_absent: bool = False) -> Any:
        return self._wait(self._files.put(key, content, if_absent=if_absent))

    def read(self, key: str, **options: Any) -> Any:
        return self._wait(self._files.read(key, **options))

    def stream(self, key: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        return self._each(self._files.stream(key, start, end))

    def local(self, key: str, *, sha256: str | None = None) -> AbstractContextManager[Path]:
        return blocking_context(self._files.local(key, sha256=sha256), self._loop)

    def find(self, key: str) -> Any:
        return self._wait(self._files.find(key))

    def list(self, prefix: str = "") -> Iterator[FileInfo]:
        return self._each(self._files.list(prefix))

    def delete(self, key: str) -> None:
        self._wait(self._files.delete(key))

    def _each(self, values: AsyncIterator[Any]) -> Iterator[Any]:
        end = object()

        async def next_one() -> Any:
            return await anext(values, end)

        while (value := self._wait(next_one())) is not end:
            yield value

    def _wait(self, call: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(call, self._loop).result()


@asynccontextmanager
async def image_copy(files: FileAccess, job: Job, row: Mapping[str, Any]) -> AsyncIterator[Path]:
    """Provides a local copy of the uploaded image that a row refers to."""
    key, name, sha256 = row.get("key"), row.get("name"), row.get("sha256")
    entry = entry_of(row.get("entry"))
    if (
        not job.reading.images
        or not (isinstance(key, str) and isinstance(name, str))
        or not (isinstance(sha256, str) or entry is not None)
        or not key.startswith(UPLOADS)
        or "/" in name
    ):
        raise Failed("STORAGE_ERROR", "the row does not name an uploaded image")
    with _for_items(name):
        if entry is None:
            async with _own_copy(files, key, name, sha256) as path:
                yield path
        else:
            async with _unpacked_copy(files, key, name, entry) as path:
                yield path


@asynccontextmanager
async def _unpacked_copy(
    files: FileAccess, key: str, name: str, entry: Entry
) -> AsyncIterator[Path]:
    """Unpacks one image of a zip, without reading the rest of it."""
    store = files.store
    async with files.local.passing() as folder:
        files.local.require_room(entry.size)
        end = entry.offset + HEADER_BYTES
        header = b"".join([block async for block in store.stream(key, entry.offset, end)])
        start = content_start(entry, header)
        path = folder / name
        with path.open("xb") as file:
            blocks = store.stream(key, start, start + entry.packed)
            async for block in unpacked(entry, blocks):
                await asyncio.to_thread(file.write, block)
        yield path


@asynccontextmanager
async def _own_copy(
    files: FileAccess, key: str, name: str, sha256: str | None
) -> AsyncIterator[Path]:
    """Provides a copy that the pipeline may even change."""
    async with files.local.passing() as folder:
        path = folder / name
        size = await copied_size(files.store, key)
        files.local.require_room(size)
        await stream_to(files.store, key, path, max_bytes=size, sha256=sha256)
        yield path
