"""Files in a bucket of any S3-compatible service. Imported only by processes that use one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from obstore.store import S3Store

from holdfast.errors import FilesGone, NotThere
from holdfast.files.contract import (
    BLOCK_BYTES,
    Meter,
    checked_key,
    checked_prefix,
    conditional_limit,
    measure,
    measured,
    missing,
    stream_to,
)
from holdfast.files.options import S3Connection
from holdfast.stored_files import Content, FileInfo, Written

#: Larger files are sent in parts. A bucket accepts at most 10,000 of them.
_PART_BYTES = 8 * 1024 * 1024
_MOST_PARTS = 9_000
_PARTS_AT_ONCE = 4
_LISTED_AT_ONCE = 1000
_CONNECT = timedelta(seconds=5)
#: Maximum time without any progress; a whole transfer may take much longer.
_STALLED = timedelta(seconds=60)
_LONGEST_REQUEST = timedelta(hours=6)
_RETRY_FOR = timedelta(seconds=15)
_RETRIES = 4
#: What the library says about a request that got no response -> what we say.
_NO_RESPONSE = {
    "error sending request": "it cannot be reached",
    "timed out": "it does not respond",
    "error decoding response": "it broke off its response",
}


class BucketStore:
    def __init__(self, connection: S3Connection, bucket: str, prefix: str = "") -> None:
        self._store = _open(connection, bucket, prefix.strip("/"))
        self._name = f"bucket {bucket}" + (
            f" at {connection.endpoint}" if connection.endpoint else ""
        )
        self._prefix = prefix

    @property
    def place(self) -> str:
        return f"{self._name}, prefix {self._prefix}" if self._prefix else self._name

    async def put(
        self, key: str, content: Content, *, max_bytes: int, if_absent: bool = False
    ) -> Written | None:
        meter = Meter(conditional_limit(max_bytes) if if_absent else max_bytes)
        body, part_bytes = await _body(content, meter, max_bytes, whole=if_absent)
        try:
            with self._failures(key):
                await obstore.put_async(
                    self._store,
                    checked_key(key),
                    body,
                    mode="create" if if_absent else "overwrite",
                    chunk_size=part_bytes,
                    max_concurrency=_PARTS_AT_ONCE,
                )
        except AlreadyExistsError:
            return None
        return meter.written(key)

    async def stream(
        self, key: str, start: int = 0, end: int | None = None
    ) -> AsyncIterator[bytes]:
        if end is not None and end <= start:
            return
        options: Any = {}
        if start or end is not None:
            options["range"] = {"offset": start} if end is None else (start, end)
        with self._failures(key):
            try:
                result = await obstore.get_async(self._store, checked_key(key), options=options)
            except BaseError as error:
                if options and "416" in str(error):  # it begins after the end
                    return
                raise
            async for block in result.stream(min_chunk_size=BLOCK_BYTES):
                yield bytes(block)

    async def copy_to(self, key: str, path: Path, *, max_bytes: int, sha256: str | None) -> None:
        await stream_to(self, key, path, max_bytes=max_bytes, sha256=sha256)

    async def find(self, key: str) -> FileInfo | None:
        try:
            with self._failures(key):
                found = await obstore.head_async(self._store, checked_key(key))
        except NotThere:
            return None
        return _info(found)

    async def list(self, prefix: str, after: str = "") -> AsyncIterator[FileInfo]:
        listing = obstore.list(
            self._store,
            checked_prefix(prefix) or None,
            offset=after or None,
            chunk_size=_LISTED_AT_ONCE,
        )
        with self._failures(prefix):
            async for batch in listing:
                for found in batch:
                    yield _info(found)

    async def list_level(self) -> AsyncIterator[FileInfo]:
        """Lists only the files directly below the prefix."""
        with self._failures(""):
            listing = await obstore.list_with_delimiter_async(self._store)
            for found in listing["objects"]:
                yield _info(found)

    async def copy(self, key: str, target: str) -> None:
        with self._failures(key):
            await obstore.copy_async(self._store, checked_key(key), checked_key(target))

    async def delete(self, key: str) -> None:
        with self._failures(key):
            await obstore.delete_async(self._store, checked_key(key))

    async def drop_unfinished(self, before: datetime) -> None:
        """Does nothing: a rule of the bucket does this, because its service knows which uploads are
        still in progress."""

    @contextmanager
    def _failures(self, key: str) -> Iterator[None]:
        """Translates errors.

        The library's texts quote whole responses, which name the access key, so only the code of
        the error is passed on."""
        try:
            yield
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error):
                raise FilesGone(
                    f"{self._name} does not exist",
                    "Create it, or correct HOLDFAST_FILES_BUCKET and HOLDFAST_S3_ENDPOINT.",
                ) from None
            raise missing(key) from None
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise FilesGone(
                f"{self._name} refuses access{_code(str(error))}",
                "Check HOLDFAST_S3_ACCESS_KEY_ID, HOLDFAST_S3_SECRET_ACCESS_KEY and what they are "
                "allowed to do: read, write, list and delete.",
            ) from None
        except AlreadyExistsError:
            raise
        except BaseError as error:
            raise FilesGone(
                f"{self._name} cannot be used: {_reason(str(error))}",
                "Check HOLDFAST_S3_ENDPOINT and HOLDFAST_S3_REGION, and that the service is up.",
            ) from None


def _open(connection: S3Connection, bucket: str, prefix: str) -> S3Store:
    given: dict[str, Any] = {
        "endpoint": connection.endpoint,
        "region": connection.region,
        "access_key_id": connection.access_key_id,
        "secret_access_key": connection.secret_access_key,
    }
    return S3Store(
        bucket,
        prefix=prefix or None,
        client_options={
            "allow_http": (connection.endpoint or "").startswith("http://"),
            "connect_timeout": _CONNECT,
            "read_timeout": _STALLED,
            "timeout": _LONGEST_REQUEST,
        },
        retry_config={"max_retries": _RETRIES, "retry_timeout": _RETRY_FOR},
        **{name: value for name, value in given.items() if value},
    )


async def _body(content: Content, meter: Meter, max_bytes: int, *, whole: bool) -> tuple[Any, int]:
    """Returns what is sent, and in parts of which size."""
    if isinstance(content, bytes):
        meter.add(content)
        return content, max(_PART_BYTES, len(content) + 1)
    if isinstance(content, Path):
        await asyncio.to_thread(measure, content, meter)
        if whole or meter.size <= _PART_BYTES:
            data = await asyncio.to_thread(content.read_bytes)
            return data, max(_PART_BYTES, len(data) + 1)
        return content, max(_PART_BYTES, -(-meter.size // _MOST_PARTS))
    blocks = measured(content, meter)
    if whole:
        data = b"".join([block async for block in blocks])
        return data, max(_PART_BYTES, len(data) + 1)
    return blocks, max(_PART_BYTES, -(-max_bytes // _MOST_PARTS))


def _info(found: Any) -> FileInfo:
    return FileInfo(found["path"], found["size"], found["last_modified"], found["e_tag"] or "")


def _reason(text: str) -> str:
    for phrase, reason in _NO_RESPONSE.items():
        if phrase in text:
            return reason
    return f"it answered with an error{_code(text)}"


def _code(text: str) -> str:
    """Returns the code in an error response, such as SignatureDoesNotMatch."""
    code = text.partition("<Code>")[2].partition("</Code>")[0]
    return f" ({code})" if code.isalnum() and code.isascii() and len(code) <= 60 else ""
