"""Stored files, read in by workers as any other source is."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import pytest
import structlog

from holdfast.cli.composition import file_access
from holdfast.configuration import load_settings
from holdfast.features.console import open_console
from holdfast.features.jobs.why import why_not_running
from holdfast.features.library.files import NewFile
from holdfast.files import FileAccess
from holdfast.files.contract import new_key
from holdfast.kernel import Store
from holdfast.kernel.jobs.control import Control, JobFile, JobRequest
from holdfast.kernel.worker.walks import MOST_FILES
from holdfast.model import JobState
from holdfast.pipeline import pipeline
from holdfast.stored_files import UPLOADS
from tests.engine.one_worker import until, work, working
from tests.store.checks import assert_all_sound, fetch


@pipeline(name="demo")
async def demo(row: dict[str, Any], ctx: Any) -> dict[str, Any]:
    return {"n": row["n"]}


class Desk:
    """People who start jobs over files. `settings` are those of the workers."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.store = store
        self.settings = {
            "HOLDFAST_DATA_DIR": str(folder),
            "HOLDFAST_WORKER_TARGET_SLICE_MS": "50",
            "HOLDFAST_INGEST_MIN_ROWS": "20",
            "HOLDFAST_INGEST_MAX_ROWS": "20",
            "HOLDFAST_RETRY_BASE_SECONDS": "0.01",
        }

    @property
    def files(self) -> FileAccess:
        return file_access(load_settings(self.settings))

    async def start(self, rows: int, owner: str = "tester") -> int:
        content = ("n\n" + "".join(f"{number}\n" for number in range(rows))).encode()
        key, sha256 = new_key(UPLOADS), hashlib.sha256(content).hexdigest()
        await self.files.store.put(key, content, max_bytes=10**9)
        new = NewFile(owner, "rows.csv", "upload", key, len(content), sha256, {})
        file_id = await open_console(self.store).files.add_file(new)
        request = JobRequest(demo, file=JobFile("rows.csv", key, sha256, file_id=file_id))
        return await Control(self.store, owner, structlog.get_logger()).start(request)

    async def accepted(self, job_id: int) -> int:
        return (await self.store.reads.counters(job_id)).accepted

    async def is_read(self, job_id: int) -> bool:
        return (await self.store.reads.job(job_id)).discovered_at is not None

    async def being_read(self) -> int:
        rows = await fetch(
            self.store,
            "select count(*) from streams where worker is not null and state = 'RUNNING'",
        )
        return int(rows[0][0])


@pytest.fixture
def desk(store: Store, tmp_path: Path) -> Desk:
    return Desk(store, tmp_path)


async def test_worker_reads_a_file_and_processes_its_rows(store: Store, desk: Desk) -> None:
    job_id = await desk.start(1000)
    why = await why_not_running(open_console(store), await store.reads.job(job_id))
    assert why is not None and why.kind == "no live worker"
    await work(store, demo, **desk.settings)
    assert (await store.reads.job(job_id)).state is JobState.DONE
    assert (await store.reads.counters(job_id)).done == 1000
    await assert_all_sound(store)


async def test_pause_kill_switch_and_cancel_act_on_a_file_that_is_being_read(
    store: Store, desk: Desk
) -> None:
    job_id = await desk.start(200_000)

    async def goes_on(after: int) -> bool:
        return await desk.accepted(job_id) > after

    async def stands_still() -> bool:
        return not await desk.being_read()

    async with working(store, demo, **desk.settings):
        await until(lambda: goes_on(0))
        await store.jobs.pause(job_id, "tester")
        async with asyncio.timeout(2):
            await until(stands_still)
        before = await desk.accepted(job_id)
        await store.jobs.resume(job_id, "tester")
        await until(lambda: goes_on(before))

        await store.jobs.switch("pipeline:demo", True, "tester")
        async with asyncio.timeout(2):
            await until(stands_still)
        before = await desk.accepted(job_id)
        await store.jobs.switch("pipeline:demo", False, "tester")
        await until(lambda: goes_on(before))

        await store.jobs.cancel(job_id, "tester")
        before = await desk.accepted(job_id)
    assert await desk.accepted(job_id) == before < 200_000


async def test_many_files_of_one_owner_do_not_hold_up_those_of_another(
    store: Store, desk: Desk
) -> None:
    ada = [await desk.start(20_000, "ada") for _ in range(MOST_FILES + 3)]
    most = 0

    async def is_read(job_id: int) -> bool:
        nonlocal most
        most = max(most, await desk.being_read())
        return await desk.is_read(job_id)

    async with working(store, demo, **desk.settings):
        await until(desk.being_read)
        ben = await desk.start(100, "ben")
        await until(lambda: is_read(ben))
        untouched = [job_id for job_id in ada if not await desk.accepted(job_id)]
        assert untouched, "ben's file waits for a place, not for all of ada's"
        for job_id in ada:
            await store.jobs.cancel(job_id, "ada")
    assert most <= MOST_FILES
    assert await desk.accepted(ben) == 100


async def test_files_take_turns_and_none_loses_its_place(store: Store, desk: Desk) -> None:
    jobs = [await desk.start(3000, owner) for owner in ("ada", "ben", "eve", "kim")]
    await work(store, demo, **desk.settings)
    for job_id in jobs:
        assert (await store.reads.counters(job_id)).done == 3000
    await assert_all_sound(store)


async def test_file_that_is_gone_fails_its_job_with_the_reason(store: Store, desk: Desk) -> None:
    job_id = await desk.start(10)
    key = (await store.reads.job(job_id)).reference
    await desk.files.store.delete(str(key))
    await work(store, demo, **desk.settings)
    job = await store.reads.job(job_id)
    assert job.state is JobState.FAILED
    assert "rows.csv is no longer in the file store" in str(job.error)


async def test_file_that_a_command_was_given_is_left_to_it(store: Store, desk: Desk) -> None:
    request = JobRequest(demo, file=JobFile("rows.csv", "/elsewhere/rows.csv", "its content"))
    await Control(store, "tester", structlog.get_logger()).start(request)
    assert await store.reads.discovering_jobs(["demo"], ["demo"]) == []
    job_id = await desk.start(10)
    assert await store.reads.discovering_jobs(["demo"], ["demo"]) == [(job_id, "UPLOAD", "tester")]
    assert await store.reads.discovering_jobs(["demo"]) == []
