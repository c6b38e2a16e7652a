"""`ctx.files` and `ctx.file`: a pipeline's own files, and uploaded images."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import orjson
import pytest

from holdfast.errors import Failed, GateWait, ItemError, UserError
from holdfast.files import FileAccess, FolderStore, LocalFiles
from holdfast.kernel import Store
from holdfast.kernel.worker.own_files import OwnFiles, image_copy
from holdfast.model import Job, JobState, Json
from holdfast.pipeline import Context, Pipeline, pipeline
from holdfast.reading import Reading
from tests.engine.one_worker import work
from tests.file_stores import bucket_of
from tests.ports import free_port
from tests.store.checks import filled_job, items_of


@pytest.fixture
def access(tmp_path: Path) -> FileAccess:
    return FileAccess(FolderStore(tmp_path / "files"), LocalFiles(tmp_path / "temporary"), 1000)


async def test_a_pipeline_has_files_of_its_own(access: FileAccess) -> None:
    mine, others = OwnFiles(access, "mine"), OwnFiles(access, "others")
    written = await mine.put("a/b.txt", b"oak")
    assert written is not None
    assert (written.key, written.sha256) == ("a/b.txt", hashlib.sha256(b"oak").hexdigest())
    assert await mine.put("a/b.txt", b"elm", if_absent=True) is None
    assert await mine.read("a/b.txt", sha256=written.sha256) == b"oak"
    assert [info.key async for info in mine.list()] == ["a/b.txt"]
    assert [block async for block in mine.stream("a/b.txt", 1)] == [b"ak"]
    assert await others.find("a/b.txt") is None
    assert await OwnFiles(access, "mine/a").find("b.txt") is None
    for key in ("../others/a", "/a", ""):
        with pytest.raises(UserError):
            await mine.put(key, b"")
    async with mine.local("a/b.txt") as path:
        assert (path.name, path.read_bytes()) == ("b.txt", b"oak")
        path.write_bytes(b"scribbled")
    assert await mine.read("a/b.txt") == b"oak"
    await mine.delete("a/b.txt")
    with pytest.raises(FileNotFoundError):
        await mine.read("a/b.txt")
    assert list(access.local.folder.iterdir()) == []


async def test_a_file_that_the_pipeline_keeps_writing_to_is_copied(
    access: FileAccess, tmp_path: Path
) -> None:
    files = OwnFiles(access, "mine")
    path = tmp_path / "growing"
    path.write_bytes(b"first")
    await files.put("a", path)
    with path.open("ab") as file:
        file.write(b" and more")
    assert await files.read("a") == b"first"
    path.write_bytes(b"x" * 1001)
    with pytest.raises(ItemError, match="TOO_LARGE"):
        await files.put("a", path)


async def test_without_the_store_an_item_waits(
    bucket_settings: dict[str, str], tmp_path: Path
) -> None:
    store = bucket_of(bucket_settings, endpoint=f"http://127.0.0.1:{free_port()}")
    files = OwnFiles(FileAccess(store, LocalFiles(tmp_path), 1000), "mine")
    with pytest.raises(GateWait, match="cannot be reached"):
        await files.put("a", b"1")


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"key": "uploads/1", "name": "a.png"},
        {"key": "exports/1", "name": "a.png", "sha256": "x"},
        {"key": "uploads/../exports/1", "name": "a.png", "sha256": "x"},
        {"key": "uploads/1", "name": "../a.png", "sha256": "x"},
    ],
)
async def test_rows_name_only_uploaded_images(access: FileAccess, row: dict[str, Any]) -> None:
    await access.store.put("uploads/1", b"1", max_bytes=1)
    await access.store.put("exports/1", b"1", max_bytes=1)
    job = Job(1, "p", "p", JobState.RUNNING, reading=Reading(images=True))
    with pytest.raises((Failed, UserError)):
        async with image_copy(access, job, row):
            raise AssertionError("it was opened")


@pipeline(name="demo")
async def demo(row: Json, ctx: Context) -> Json:
    key = f"notes/{row['n']}.txt"
    await ctx.files.put(key, b"oak")
    async with ctx.files.local(key) as path:
        return {"text": path.read_text(), "size": (await ctx.files.find(key)).size}


class Plain(Pipeline):
    """Its `process` runs in a thread."""

    name = "demo"

    def process(self, row: Json, ctx: Context) -> Json:
        key = f"notes/{row['n']}.txt"
        ctx.files.put(key, b"oak")
        blocks = [*ctx.files.stream(key), *(info.key for info in ctx.files.list())]
        assert blocks == [b"oak", key]
        with ctx.files.local(key) as path:
            return {"text": path.read_text(), "size": ctx.files.find(key).size}


@pytest.mark.parametrize("made", [demo, Plain()], ids=["async", "plain"])
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_items_use_files(store: Store, made: Pipeline, tmp_path: Path) -> None:
    job_id = await filled_job(store, 1)
    await work(store, made, HOLDFAST_DATA_DIR=str(tmp_path / "disk"))
    [item] = await items_of(store, job_id)
    assert orjson.loads(item.result or "{}") == {"text": "oak", "size": 3}
    assert (tmp_path / "disk/files/pipelines/demo/notes/0.txt").read_text() == "oak"
