"""Files as pipelines see them: named by keys, kept in the file store."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

#: What can be written to the store; a path stands for the file's content.
Content = bytes | Path | AsyncIterable[bytes]

#: Prefixes of keys: of files that people upload, of exports, and of the files of pipelines.
UPLOADS, EXPORTS, PIPELINES = "uploads/", "exports/", "pipelines/"


def files_of_pipeline(pipeline: str) -> str:
    """Returns the prefix of a pipeline's keys.

    It is quoted, so that one is never within another's."""
    return f"{PIPELINES}{quote(pipeline, safe='')}/"


def files_of_job(pipeline: str, job_id: int) -> str:
    """Returns the prefix of what a pipeline keeps for one job, which is deleted with it."""
    return f"{files_of_pipeline(pipeline)}jobs/{job_id}/"


#: Largest content of a write that must not replace another: it is sent in one request.
CONDITIONAL_BYTES = 64 * 1024 * 1024
#: Largest content that is read into memory, unless the caller says otherwise.
READ_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file as the store lists it. `tag` changes with its content, if the store gives one."""

    key: str
    size: int
    modified_at: datetime
    tag: str = ""


@dataclass(frozen=True, slots=True)
class Written:
    """A file that was written completely."""

    key: str
    size: int
    sha256: str


class PipelineFiles(Protocol):
    """The files of a pipeline, as `ctx.files`, which no other pipeline sees.

    In a plain `def` pipeline, the same calls without `await` and `async`."""

    async def put(
        self, key: str, content: Content, *, if_absent: bool = False
    ) -> Written | None: ...

    async def read(
        self, key: str, *, max_bytes: int = READ_BYTES, sha256: str | None = None
    ) -> bytes: ...

    def stream(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]: ...

    def local(
        self, key: str, *, sha256: str | None = None
    ) -> AbstractAsyncContextManager[Path]: ...

    async def find(self, key: str) -> FileInfo | None: ...

    def list(self, prefix: str = "") -> AsyncIterator[FileInfo]: ...

    async def delete(self, key: str) -> None: ...
