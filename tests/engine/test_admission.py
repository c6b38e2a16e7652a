"""Every way to a new job obeys the same rules: the doors against the rules, one by one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.api_parts import opened_parts
from holdfast.cli.composition import upkeep_limits
from holdfast.configuration import Settings, load_settings
from holdfast.errors import HoldfastError, InputError, UserError
from holdfast.features.accounts.accounts import Role
from holdfast.features.accounts.person import Person
from holdfast.features.schedules.chores import DueSchedules
from holdfast.features.schedules.table import Schedules
from holdfast.kernel import IngestPage, NewJob, NewStream
from holdfast.kernel.jobs.control import Control, JobFile, JobRequest
from holdfast.kernel.jobs.planning import planner_at_end
from holdfast.kernel.worker.upkeep.parts import UpkeepParts
from holdfast.kernel.worker.upkeep.tend import Tending
from holdfast.messaging.envelope import parse
from holdfast.messaging.job_starts import JobStarts
from holdfast.messaging.signing import MessageTrust
from holdfast.model import JobState, Lane, Page, Record
from holdfast.options import Option
from holdfast.orders import Planned, Start, Verified
from holdfast.pipeline import Pipeline
from holdfast.reading import Reading
from holdfast.server.dependencies import Parts
from tests.messaging.fleet_scene import message
from tests.store.checks import fetch, filled_job

ROOT = Person("root", Role.ADMIN)


class Books(Pipeline):
    """The books of one shelf."""

    name = "books"
    lane = Lane.BACKFILL
    options = (Option("shelf", default="main"),)

    def sources(self, options: Mapping[str, Any]) -> Sequence[str]:
        return (options["shelf"],)

    async def discover(self, source: str, cursor: Any, ctx: Any) -> AsyncIterator[Page]:
        yield Page([Record({"book": source})], end=True)

    async def process(self, row: dict[str, Any], ctx: Any) -> Any:
        return row


class Planning(Books):
    name = "planning"

    async def plan(self, tx: Any, request: Any, streams: Any, now: Any) -> Planned:
        return Planned((Start(request["shelf"], "full", "planned", {}),))


class Following(Planning):
    """Reads the same shelf again after each pass."""

    async def conclude(self, tx: Any, job: Any, stream: Any) -> Verified:
        return Verified(1, 1, True)

    async def plan(self, tx: Any, request: Any, streams: Any, now: Any) -> Planned:
        shelf = request.get("shelf") or request["follow"]
        return Planned((Start(shelf, "full", "planned", {}),))


@dataclass
class Scene:
    parts: Parts
    settings: Settings
    folder: Path

    @property
    def control(self) -> Control:
        return self.parts.control("root")

    async def refusal(self, door: Door, shelf: str) -> str:
        """Why the door makes no job; empty if it does."""
        before = await self.jobs()
        try:
            error = await door(self, shelf)
        except HoldfastError as refused:
            error = str(refused)
        made = await self.jobs() - before
        assert made == (0 if error else 1), (shelf, error)
        return error or ""

    async def jobs(self) -> int:
        return int((await fetch(self.parts.store, "select count(*) from jobs"))[0][0])


Door = Callable[[Scene, str], Awaitable[str | None]]


async def command(scene: Scene, shelf: str) -> None:
    await scene.control.start(JobRequest(scene.parts.pipelines["books"], {"shelf": shelf}))


async def api_or_page(scene: Scene, shelf: str) -> None:
    request = JobRequest(scene.parts.pipelines["books"], {"shelf": shelf})
    await scene.parts.new_jobs.start(request, ROOT)


async def upload(scene: Scene, shelf: str) -> None:
    path = scene.folder / "rows.csv"
    path.write_text("book\noak\n")
    file = JobFile(path.name, str(path), shelf)
    await scene.control.start(JobRequest(scene.parts.pipelines["books"], file=file))


async def plan(scene: Scene, shelf: str) -> None:
    await scene.control.request(scene.parts.pipelines["planning"], {"shelf": shelf})


async def schedule(scene: Scene, shelf: str) -> str | None:
    return await _fired(scene, "books", shelf)


async def planned_schedule(scene: Scene, shelf: str) -> str | None:
    return await _fired(scene, "planning", shelf)


async def _fired(scene: Scene, pipeline: str, shelf: str) -> str | None:
    parts, due = scene.parts, datetime.now(UTC) - timedelta(minutes=1)
    await Schedules(parts.store.database).set_schedule(
        shelf, pipeline, "0 6 * * *", "UTC", {"shelf": shelf}, due, "root"
    )
    upkeep = UpkeepParts(
        parts.store, scene.control, parts.pipelines, upkeep_limits(scene.settings), "timer",
        parts.metrics, parts.log, Tending(parts.store, parts.pipelines),
    )  # fmt: skip
    await DueSchedules(upkeep).fire()
    rows = {row["name"]: row for row in await Schedules(parts.store.database).all()}
    error: str | None = rows[shelf]["error"]
    return error


async def job_message(scene: Scene, shelf: str) -> None:
    parts = scene.parts
    payload = message("job.start", {"pipeline": "books", "options": {"shelf": shelf}})
    parsed: Any = parse(payload, 100_000)
    starts = JobStarts(parts.store, scene.control, parts.pipelines, parts.log, MessageTrust())
    await starts.start(parsed, parsed.body, payload)


DOORS: dict[str, Door] = {
    "command": command,
    "api": api_or_page,
    "upload": upload,
    "plan": plan,
    "schedule": schedule,
    "planned": planned_schedule,
    "message": job_message,
}


@asynccontextmanager
async def opened_scene(
    url: str, folder: Path, enabled_by: str | None = None, **settings: str
) -> AsyncIterator[Scene]:
    environment = {
        "HOLDFAST_DATABASE_URL": url,
        "HOLDFAST_DATA_DIR": str(folder / ".holdfast"),
        **{f"HOLDFAST_{name.upper()}": value for name, value in settings.items()},
    }
    pipelines: dict[str, Pipeline] = {"books": Books(), "planning": Planning()}
    for pipeline in pipelines.values():
        pipeline.enabled_by = enabled_by
    loaded = load_settings(environment)
    async with opened_parts(loaded, pipelines) as parts:
        await parts.accounts.add_user(ROOT.name, ROOT.role, None, "tester")
        yield Scene(parts, loaded, folder)


async def _refusals(scene: Scene, round: int = 0) -> dict[str, str]:
    return {
        name: await scene.refusal(door, f"{name} {round}") for name, door in DOORS.items()
    }  # fmt: skip


async def test_disabled_backfills_are_made_by_no_door(database_url: str, tmp_path: Path) -> None:
    async with opened_scene(database_url, tmp_path, backfill_enabled="false") as scene:
        refusals = await _refusals(scene)
    assert refusals.pop("upload") == ""  # a file is no backfill
    assert all("Set BACKFILL_ENABLED=true to enable" in text for text in refusals.values()), (
        refusals
    )


@pytest.mark.parametrize("scopes", [("all",), ("pipeline:books", "pipeline:planning")])
async def test_kill_switch_closes_every_door_until_it_is_off(
    database_url: str, tmp_path: Path, scopes: tuple[str, ...]
) -> None:
    async with opened_scene(database_url, tmp_path) as scene:
        for scope in scopes:
            await scene.control.switch(scope, True, "costs")
        refusals = await _refusals(scene)
        assert all("kill switch" in text and "costs" in text for text in refusals.values())
        for scope in scopes:
            await scene.control.switch(scope, False, "")
        assert not any((await _refusals(scene, 1)).values())


async def test_kill_switch_of_a_source_closes_the_doors_to_it(
    database_url: str, tmp_path: Path
) -> None:
    async with opened_scene(database_url, tmp_path) as scene:
        for name in DOORS:
            await scene.control.switch(f"source:{name} 0", True, "broken")
        refusals = await _refusals(scene)
        assert refusals.pop("upload") == ""
        assert all("kill switch source:" in text for text in refusals.values()), refusals
        assert not any((await _refusals(scene, 1)).values())
        some = [NewStream("api 0", "x"), NewStream("free", "x")]
        assert await scene.parts.store.jobs.create(NewJob("books", "two", some), "root")


async def test_pipeline_that_starts_off_makes_no_job_until_it_is_on(
    database_url: str, tmp_path: Path
) -> None:
    async with opened_scene(database_url, tmp_path, "books_enabled") as scene:
        refusals = await _refusals(scene)
        assert all("Set books_enabled=on to enable" in text for text in refusals.values())
        await scene.parts.store.flags.set_flag("books_enabled", True, "root")
        assert not any((await _refusals(scene, 1)).values())
        await scene.parts.store.flags.set_flag("books_enabled", False, "root")
        assert all((await _refusals(scene, 2)).values())


async def test_backlog_closes_every_door(database_url: str, tmp_path: Path) -> None:
    async with opened_scene(database_url, tmp_path, backlog_max_items="5") as scene:
        assert not any((await _refusals(scene)).values())
        await filled_job(scene.parts.store, 6)
        refusals = await _refusals(scene, 1)
    assert all("too many items are waiting" in text for text in refusals.values()), refusals


async def test_caps_bind_every_door(database_url: str, tmp_path: Path) -> None:
    limits = {"max_urls_per_run": "7", "max_urls_per_source": "3"}
    async with opened_scene(database_url, tmp_path, **limits) as scene:
        assert not any((await _refusals(scene)).values())
        caps = await fetch(
            scene.parts.store,
            "select distinct j.max_items, s.max_items from jobs j"
            " join streams s on s.job_id = j.id",
        )
        assert [tuple(row) for row in caps] == [(7, 3)]
        books = scene.parts.pipelines["books"]
        for wanted in ((8, None), (7, 4)):
            with pytest.raises(UserError, match="more than the limit"):
                await scene.control.start(_capped(books, "more", *wanted))
            with pytest.raises(UserError, match="more than the limit"):
                await scene.control.resume(1, *wanted)
        fewer = await scene.control.start(_capped(books, "few", 2, 1))
        assert (await scene.parts.store.reads.job(fewer)).max_items == 2


def _capped(
    pipeline: Pipeline, shelf: str, max_items: int, max_per_source: int | None
) -> JobRequest:
    caps = {"max_items": max_items, "max_per_source": max_per_source}
    return JobRequest(pipeline, {"shelf": shelf}, **caps)


@pytest.mark.parametrize("table", [7, "names", {"names": 7}, {"names": {"a": 7}}])
async def test_options_of_a_file_that_name_no_columns_are_refused(
    database_url: str, tmp_path: Path, table: Any
) -> None:
    async with opened_scene(database_url, tmp_path) as scene:
        new = NewJob("books", "odd", [NewStream("odd", "odd")], reading=Reading(table=table))
        with pytest.raises(InputError, match="do not name columns"):
            await scene.parts.store.jobs.create(new, "root")


async def test_job_ends_although_what_follows_it_is_switched_off(
    database_url: str, tmp_path: Path
) -> None:
    async with opened_scene(database_url, tmp_path) as scene:
        store, following = scene.parts.store, Following()
        (job_id,) = (await scene.control.request(following, {"shelf": "main"})).job_ids
        stream = await store.ingest.lease_stream(job_id, "walker")
        assert stream is not None
        await store.ingest.ingest(stream, IngestPage((), None, True), "walker")
        await scene.control.switch("pipeline:planning", True, "held")
        planner = planner_at_end(following, await store.reads.job(job_id))
        assert await store.outcomes.complete(job_id, planner) is JobState.DONE
        assert await scene.jobs() == 1
