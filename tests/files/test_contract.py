"""What every file store promises, shown on a folder and on a bucket of a real S3 server."""

from __future__ import annotations

import asyncio
import hashlib
import os
import resource
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from holdfast.errors import InputError, NotThere, TooLarge, UserError
from holdfast.files import FileStore, FolderStore
from holdfast.files.contract import read_all, stream_to
from holdfast.files.local import LocalFiles
from holdfast.files.probe import PROBES, check_store

MIB = 1024 * 1024


async def _blocks(count: int, *, failing: bool = False) -> AsyncIterator[bytes]:
    for number in range(count):
        yield bytes([number]) * MIB
    if failing:
        raise ValueError("the source broke off")


async def _all(files: FileStore, key: str, *span: int) -> bytes:
    return b"".join([block async for block in files.stream(key, *span)])


async def test_content_comes_back_with_size_and_checksum(files: FileStore) -> None:
    written = await files.put("a/b.txt", b"oak", max_bytes=3)
    assert written is not None
    assert (written.size, written.sha256) == (3, hashlib.sha256(b"oak").hexdigest())
    assert await read_all(files, "a/b.txt", max_bytes=3, sha256=written.sha256) == b"oak"
    info = await files.find("a/b.txt")
    assert info is not None
    assert (info.key, info.size) == ("a/b.txt", 3)
    assert abs(datetime.now(UTC) - info.modified_at) < timedelta(minutes=10)


async def test_empty_and_oddly_named_files_are_files(files: FileStore) -> None:
    key = "čaj/100 % #1?.csv"
    await files.put(key, b"", max_bytes=0)
    assert await _all(files, key) == b""
    assert [info.key async for info in files.list("čaj/")] == [key]


async def test_large_content_is_streamed_both_ways(files: FileStore, tmp_path: Path) -> None:
    written = await files.put("large", _blocks(20), max_bytes=20 * MIB)
    assert written is not None
    copy = await stream_to(
        files, "large", tmp_path / "copy", max_bytes=written.size, sha256=written.sha256
    )
    assert copy == written
    again = await files.put("again", tmp_path / "copy", max_bytes=20 * MIB)
    assert again is not None
    assert again.sha256 == written.sha256


async def test_ranges_are_read(files: FileStore) -> None:
    await files.put("digits", b"0123456789", max_bytes=10)
    assert await _all(files, "digits", 3) == b"3456789"
    assert await _all(files, "digits", 3, 5) == b"34"
    assert await _all(files, "digits", 8, 50) == b"89"
    assert await _all(files, "digits", 10) == await _all(files, "digits", 4, 4) == b""


async def test_missing_files(files: FileStore, tmp_path: Path) -> None:
    assert await files.find("none") is None
    await files.delete("none")
    with pytest.raises(NotThere):
        await _all(files, "none")
    with pytest.raises(NotThere):
        await files.copy_to("none", tmp_path / "copy", max_bytes=1, sha256=None)
    assert [info async for info in files.list("no/")] == []


async def test_a_conditional_write_replaces_nothing(files: FileStore) -> None:
    assert await files.put("once", b"first", max_bytes=10, if_absent=True) is not None
    assert await files.put("once", b"second", max_bytes=10, if_absent=True) is None
    assert await _all(files, "once") == b"first"
    await files.put("once", b"third", max_bytes=10)
    assert await _all(files, "once") == b"third"


async def test_of_conditional_writers_at_once_one_wins(files: FileStore) -> None:
    contents = [f"writer {number}".encode() for number in range(8)]
    written = await asyncio.gather(
        *(files.put("race", content, max_bytes=20, if_absent=True) for content in contents)
    )
    winners = [content for content, won in zip(contents, written, strict=True) if won]
    assert winners == [await _all(files, "race")]


async def test_too_much_is_refused_and_nothing_is_left(files: FileStore, tmp_path: Path) -> None:
    path = tmp_path / "content"
    path.write_bytes(b"x" * (12 * MIB))
    for content in (b"four", path, _blocks(12)):
        with pytest.raises(TooLarge):
            await files.put("big", content, max_bytes=3 if content == b"four" else 11 * MIB)
    assert await files.find("big") is None
    await files.put("small", b"four", max_bytes=4)
    with pytest.raises(TooLarge):
        await read_all(files, "small", max_bytes=3)


async def test_a_write_that_breaks_off_keeps_what_was_there(files: FileStore) -> None:
    await files.put("kept", b"before", max_bytes=10)
    with pytest.raises(ValueError, match="broke off"):
        await files.put("kept", _blocks(10, failing=True), max_bytes=20 * MIB)
    assert await _all(files, "kept") == b"before"
    assert [info.key async for info in files.list("")] == ["kept"]


async def test_lists_are_in_order_and_continue_after_a_key(files: FileStore) -> None:
    keys = ["a/1", "a/2/x", "a/2/y", "a/3", "a0/1", "b"]
    for key in keys:
        await files.put(key, b"1", max_bytes=1)
    assert [info.key async for info in files.list("")] == keys
    assert [info.key async for info in files.list("a/")] == keys[:4]
    assert [info.key async for info in files.list("a/", after="a/2/x")] == keys[2:4]
    assert [info.key async for info in files.list("", after="a/3")] == keys[4:]
    await files.delete("a/2/x")
    await files.delete("a/2/y")
    assert [info.key async for info in files.list("a/")] == ["a/1", "a/3"]


async def test_damaged_content_is_refused(files: FileStore, tmp_path: Path) -> None:
    await files.put("a", b"changed", max_bytes=10)
    promised = hashlib.sha256(b"as it was").hexdigest()
    with pytest.raises(InputError, match="damaged"):
        await files.copy_to("a", tmp_path / "copy", max_bytes=10, sha256=promised)
    with pytest.raises(InputError, match="damaged"):
        await read_all(files, "a", max_bytes=10, sha256=promised)


@pytest.mark.parametrize(
    "key", ["", "/a", "a/", "a//b", "../a", "a/./b", ".a", "a\0b", "a\nb", "a\\b", "x" * 201]
)
async def test_keys_that_mean_something_else_are_refused(files: FileStore, key: str) -> None:
    with pytest.raises(UserError, match="not a key"):
        await files.put(key, b"", max_bytes=1)
    with pytest.raises(UserError, match="not a key"):
        await _all(files, key)


async def test_a_local_copy_has_its_name_and_goes_away(files: FileStore, tmp_path: Path) -> None:
    local = LocalFiles(tmp_path / "temporary")
    await files.put("uploads/1", b"oak", max_bytes=3)
    async with local.copy(files, "uploads/1", "rows.csv", size=3, sha256=None) as path:
        assert (path.name, path.read_bytes()) == ("rows.csv", b"oak")
    assert list(local.folder.iterdir()) == []


async def test_the_check_passes_and_leaves_nothing(files: FileStore) -> None:
    await check_store(files)
    assert [info async for info in files.list(PROBES)] == []


async def test_what_killed_processes_left_is_removed_when_it_is_old(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    folder = tmp_path / "files"
    files = FolderStore(folder)
    await files.put("kept", b"1", max_bytes=1)
    local = LocalFiles(tmp_path / "temporary")
    old, new = folder / ".writing-old", folder / ".writing-new"
    passing, busy = local.folder / ".passing-old", local.folder / ".passing-busy"
    for path in (old, new, passing / "file", busy / "file"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"half")
    ago = (now - timedelta(days=2)).timestamp()
    for path in (old, passing / "file", passing, busy):
        os.utime(path, (ago, ago))
    await files.drop_unfinished(now - timedelta(days=1))
    await local.clear(now)
    left = [path for path in (old, new, passing, busy) if path.exists()]
    assert left == [new, busy]
    assert await files.find("kept") is not None


async def test_in_a_folder_a_key_cannot_continue_another(tmp_path: Path) -> None:
    files = FolderStore(tmp_path / "files")
    await files.put("a/b", b"1", max_bytes=1)
    for key in ("a", "a/b/c"):
        for if_absent in (False, True):
            with pytest.raises(UserError, match="continue another"):
                await files.put(key, b"1", max_bytes=1, if_absent=if_absent)
        assert await files.find(key) is None


@contextmanager
def _room_for(size: int) -> Iterator[None]:
    """Files cannot become larger: of a write beyond it, a part is taken, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_write_that_a_full_disk_takes_in_part_fails(tmp_path: Path) -> None:
    files = FolderStore(tmp_path / "files")
    for content in (b"1" * 2 * MIB, _blocks(2)):
        with _room_for(3 * MIB // 2), pytest.raises(OSError, match="too large"):
            await files.put("cut", content, max_bytes=2 * MIB)
    assert await files.find("cut") is None
    assert list((tmp_path / "files").iterdir()) == []
