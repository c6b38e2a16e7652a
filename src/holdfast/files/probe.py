"""Checks that a file store does what we rely on, for `holdfast doctor`."""

from __future__ import annotations

import secrets

from holdfast.errors import FilesGone, UserError
from holdfast.files.contract import FileStore, read_all

#: Files under it are written and deleted by checks only.
PROBES = "probes/"
_BYTES = 1024


async def check_store(store: FileStore) -> None:
    """Writes, reads, lists and deletes a small file. Raises FilesGone with what is wrong."""
    key, content = f"{PROBES}{secrets.token_hex(16)}", secrets.token_bytes(_BYTES)
    try:
        await _check(store, key, content)
    except UserError as error:
        raise FilesGone(f"{store.place}: {error.message}", error.hint) from error


async def _check(store: FileStore, key: str, content: bytes) -> None:
    await store.put(key, content, max_bytes=_BYTES)
    try:
        if await read_all(store, key, max_bytes=_BYTES) != content:
            raise FilesGone(f"{store.place} returned other bytes than were written to it")
        if key not in [info.key async for info in store.list(PROBES)]:
            raise FilesGone(f"{store.place} does not list a file that was just written")
        if await store.put(key, b"", max_bytes=_BYTES, if_absent=True) is not None:
            raise FilesGone(
                f"{store.place} ignores the condition of a write",
                "Use a service that supports If-None-Match on PUT.",
            )
    finally:
        await store.delete(key)
    if await store.find(key) is not None:
        raise FilesGone(f"{store.place} still has a file that was deleted")
