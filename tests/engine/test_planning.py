"""What a plan orders: one job on several sources, with a lane, caps and options."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import structlog

from holdfast import Dedupe, Gate, Lane, Mark, Page, Pipeline, Planned, Record, Start
from holdfast.errors import PipelineError
from holdfast.kernel import Store
from holdfast.kernel.arrivals.idempotency import RequestKey
from holdfast.kernel.jobs.control import Control, JobRequest
from holdfast.model import JobState
from tests.engine.one_worker import work


class Stations(Pipeline):
    """Starts what the request names, in one job; first marks it, as a webhook would."""

    name = "stations"

    async def plan(self, tx: Any, request: Any, streams: Any, now: Any) -> Planned:
        sources = request.get("sources") or [request["force_full"]]
        known = await streams(sources)
        marks = [Mark(stream.stream_id, rerun=True) for stream in known]
        return Planned([*marks, Start(sources, "daily", "a job", **request.get("more", {}))])

    async def discover(self, source: str, cursor: Any, ctx: Any) -> AsyncIterator[Page]:
        numbers = range(ctx.options.get("readings", 3))
        yield Page([Record({"of": source, "n": n}) for n in numbers], end=True)

    async def process(self, row: Any, ctx: Any) -> Any:
        return row


async def order(store: Store, *sources: str, **more: Any) -> int:
    control = Control(store, "tester", structlog.get_logger())
    request = {"sources": list(sources), "more": more}
    return (await control.request(Stations(), request)).job_ids[0]


async def test_one_job_reads_all_sources_of_its_start(store: Store) -> None:
    options = {"readings": 5}
    job_id = await order(
        store, "hill", "harbour", "hill", lane=Lane.SENTINEL, options=options, max_items=7,
        max_items_per_source=4,
    )  # fmt: skip
    await work(store, Stations())
    job = await store.reads.job(job_id)
    assert (job.state, job.lane, job.max_items) == (JobState.DONE, Lane.SENTINEL, 7)
    assert job.options == options
    streams = await store.streams.of_job(job_id)
    assert sorted((s.source, s.mode, s.max_items) for s in streams) == [
        ("harbour", "daily", 4), ("hill", "daily", 4),
    ]  # fmt: skip
    assert (await store.reads.counters(job_id)).done == 7


async def test_start_clears_the_marks_of_all_its_sources(store: Store) -> None:
    await order(store, "hill", "harbour")
    await work(store, Stations())
    job_id = await order(store, "hill", "harbour")
    streams = await store.plans.streams("stations")
    assert {(s.job_id, s.generation, s.rerun_requested) for s in streams} == {(job_id, 2, False)}


async def test_forced_pass_is_noted_under_the_key_of_its_request(store: Store) -> None:
    before = await order(store, "hill")
    await work(store, Stations())
    requests = store.taken_keys
    assert await requests.begin_request("ada", "a key", "the request", "api") is None
    control = Control(store, "tester", structlog.get_logger())
    request = JobRequest(Stations(), key=RequestKey("ada", "a key"))
    job = await store.reads.job(before)
    [forced] = await control.force_full(request, job, "hill")
    sent_again = await requests.begin_request("ada", "a key", "the request", "api")
    assert sent_again is not None and sent_again.made == forced


async def test_lane_is_that_of_the_pipeline_unless_the_start_names_one(store: Store) -> None:
    assert (await store.reads.job(await order(store, "hill"))).lane is Lane.BACKFILL
    assert (await store.reads.job(await order(store, "pier", lane=Lane.EVENT))).lane is Lane.EVENT


async def test_gates_of_a_start_are_declared_with_its_job(store: Store) -> None:
    await order(store, "hill", gates=[Gate("hill.example", spacing=7, jitter=3, concurrency=1)])
    [gate] = [gate for gate in await store.gates.all() if gate["name"] == "hill.example"]
    assert (gate["spacing"], gate["jitter"], gate["concurrency"]) == (7, 3, 1)


class Versions(Pipeline):
    """Lists one known record with the version that the test says."""

    name = "versions"
    dedupe = Dedupe("versions")

    def __init__(self, version: str | None, note: str) -> None:
        self._record = Record({"note": note}, "one", version)
        super().__init__()

    async def discover(self, source: str, cursor: Any, ctx: Any) -> AsyncIterator[Page]:
        yield Page([self._record], end=True)

    async def process(self, row: Any, ctx: Any) -> Any:
        return row


async def test_version_of_a_record_decides_whether_it_changed(store: Store) -> None:
    control = Control(store, "tester", structlog.get_logger())

    async def listed(version: str | None, note: str) -> int:
        made = Versions(version, note)
        job_id = await control.start(JobRequest(made))
        await work(store, made)
        return (await store.reads.counters(job_id)).accepted

    assert await listed("1", "first") == 1
    assert await listed("1", "another note") == 0
    assert await listed("2", "another note") == 1
    assert await listed("", "a third note") == 0
    assert await listed(None, "a third note") == 1


def test_start_needs_a_source_and_a_lane_that_discovers() -> None:
    with pytest.raises(PipelineError, match="names no source"):
        Start([], "daily", "nothing")
    with pytest.raises(PipelineError, match="lane UPLOAD"):
        Start("hill", "daily", "a job", lane=Lane.UPLOAD)
