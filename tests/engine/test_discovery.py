"""Discovery by a worker: sources that fail, that are silent, and that never end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import structlog

from holdfast import Failed, NothingYet, Page, Pipeline, Record, Retry
from holdfast.errors import DiscoveryError
from holdfast.features.console import open_console
from holdfast.features.jobs.why import why_not_running
from holdfast.kernel import Store
from holdfast.kernel.jobs.control import Control, JobRequest
from holdfast.kernel.record.streams import StreamView
from holdfast.kernel.worker.walks import MOST_WALKS
from holdfast.model import JobState, StreamState
from tests.engine.one_worker import until, work, working

#: Slices and delays of milliseconds; three failures in a row are one too many.
QUICK = {
    "HOLDFAST_RETRY_BASE_SECONDS": "0.01",
    "HOLDFAST_MAX_ATTEMPTS_ERROR": "3",
    "HOLDFAST_WORKER_TARGET_SLICE_MS": "50",
}

Walk = Callable[[str, Any], AsyncIterator[Page | NothingYet]]


class Follower(Pipeline):
    """Walks as the test says; `asked` are the cursors it was asked for, in order."""

    name = "follower"

    def __init__(self, walk: Walk, *sources: str, follows: bool = False) -> None:
        self.follows = follows
        self._walk = walk
        self._sources = sources or ("orders",)
        self.asked: list[tuple[str, Any]] = []
        super().__init__()

    def sources(self, options: Any) -> tuple[str, ...]:
        return self._sources

    async def discover(
        self, source: str, cursor: Any, ctx: Any
    ) -> AsyncIterator[Page | NothingYet]:
        self.asked.append((source, cursor))
        async for page in self._walk(source, cursor):
            yield page

    async def process(self, row: Any, ctx: Any) -> Any:
        return row


def failing(times: int, error: Exception) -> Walk:
    """One record, then the error so often, then the end."""
    left = [times]

    async def walk(source: str, cursor: Any) -> AsyncIterator[Page | NothingYet]:
        if cursor is None:
            yield Page([Record({"n": 1})], next_cursor=1)
        if left[0]:
            left[0] -= 1
            raise error
        yield Page([Record({"n": 2})], end=True)

    return walk


async def start(store: Store, made: Pipeline) -> int:
    return await Control(store, "tester", structlog.get_logger()).start(JobRequest(made))


async def state_of(store: Store, job_id: int) -> tuple[JobState, int, str | None]:
    job = await store.reads.job(job_id)
    return job.state, (await store.reads.counters(job_id)).done, job.error


async def stream_of(store: Store, job_id: int) -> StreamView:
    return (await store.streams.of_job(job_id))[0]


@pytest.mark.parametrize(
    "error", [KeyError("items"), Retry("not ready", after=0.0), Failed("NETWORK_ERROR", "reset")]
)
async def test_error_that_may_pass_is_tried_again_from_the_cursor(
    store: Store, error: Exception
) -> None:
    made = Follower(failing(2, error))
    job_id = await start(store, made)
    await work(store, made, **QUICK)
    assert await state_of(store, job_id) == (JobState.DONE, 2, None)
    assert made.asked == [("orders", None), ("orders", 1), ("orders", 1)]


async def test_source_that_keeps_failing_fails_the_job_and_a_resume_continues(
    store: Store,
) -> None:
    made = Follower(failing(3, KeyError("items")))
    job_id = await start(store, made)
    await work(store, made, **QUICK)
    state, done, error = await state_of(store, job_id)
    assert (state, done) == (JobState.FAILED, 1)
    assert "KeyError in the pipeline's discover: 'items'" in str(error)
    await store.jobs.resume(job_id, "tester")
    await work(store, made, **QUICK)
    assert await state_of(store, job_id) == (JobState.DONE, 2, None)


async def test_permanent_failure_is_not_tried_again(store: Store) -> None:
    made = Follower(failing(1, Failed("PARSE_ERROR", "a page of another format")))
    job_id = await start(store, made)
    await work(store, made, **QUICK)
    state, _, error = await state_of(store, job_id)
    assert state is JobState.FAILED
    assert "PARSE_ERROR: a page of another format" in str(error)
    assert len(made.asked) == 1


async def test_retry_waits_as_long_as_it_says(store: Store) -> None:
    made = Follower(failing(1, Retry("the export is being written", after=3600)))
    job_id = await start(store, made)
    async with working(store, made, **QUICK):
        await until(lambda: _failures(store, job_id))
    stream = await stream_of(store, job_id)
    assert stream.state == StreamState.RUNNING
    assert not stream.due
    assert "the export is being written" in str(stream.error)
    waited = await _seconds_until(store, job_id)
    assert 3590 < waited < 3610


async def _failures(store: Store, job_id: int) -> int:
    return (await stream_of(store, job_id)).failures


async def _seconds_until(store: Store, job_id: int) -> float:
    available_at = (await stream_of(store, job_id)).available_at
    assert available_at is not None
    return (available_at - await store.jobs.now()).total_seconds()


@pytest.mark.parametrize(
    "error", [KeyError("items"), Failed("PARSE_ERROR", "another format"), OSError("reset")]
)
async def test_stream_that_follows_its_source_never_gives_up(
    store: Store, error: Exception
) -> None:
    made = Follower(failing(8, error), follows=True)
    job_id = await start(store, made)
    await work(store, made, **QUICK)
    assert await state_of(store, job_id) == (JobState.DONE, 2, None)
    assert len(made.asked) == 9


@pytest.mark.parametrize("error", [KeyError("items"), DiscoveryError("a repeated cursor")])
async def test_stream_of_a_standing_job_never_gives_up(store: Store, error: Exception) -> None:
    made = Follower(failing(8, error))
    job_id, _ = await Control(store, "tester", structlog.get_logger()).open(JobRequest(made))

    async def both_are_done() -> bool:
        return await state_of(store, job_id) == (JobState.RUNNING, 2, None)

    async with working(store, made, **QUICK):
        await until(both_are_done)
    assert len(made.asked) == 9


async def test_source_with_nothing_yet_is_asked_again_and_says_what_it_waits_for(
    store: Store,
) -> None:
    ready = asyncio.Event()

    async def walk(source: str, cursor: Any) -> AsyncIterator[Page | NothingYet]:
        if cursor is None:
            yield Page([Record({"n": 1})], next_cursor=1)
        if not ready.is_set():
            yield NothingYet(after=0.02, waiting_for="orders of the shop")
        yield Page([Record({"n": 2})], end=True)

    made = Follower(walk, follows=True)
    job_id = await start(store, made)
    async with working(store, made, **QUICK):
        await until(lambda: _asked(made, 4))
        assert (await stream_of(store, job_id)).waiting_for == "orders of the shop"
        ready.set()
        await until(lambda: _is_done(store, job_id))
    assert await state_of(store, job_id) == (JobState.DONE, 2, None)
    assert [cursor for _, cursor in made.asked[1:]] == [1] * (len(made.asked) - 1)
    stream = await stream_of(store, job_id)
    assert stream.waiting_for is None
    slices = await store.streams.slices(stream.id)
    assert all(one.pages_count for one in slices), "looks that found nothing leave no history"


async def _asked(made: Follower, times: int) -> bool:
    return len(made.asked) >= times


async def _is_done(store: Store, job_id: int) -> bool:
    return (await store.reads.job(job_id)).state is JobState.DONE


async def test_why_names_what_a_quiet_source_waits_for(store: Store) -> None:
    async def walk(source: str, cursor: Any) -> AsyncIterator[Page | NothingYet]:
        yield NothingYet(after=3600, waiting_for="orders of the shop")

    made = Follower(walk, follows=True)
    job_id = await start(store, made)
    async with working(store, made, **QUICK):
        await until(lambda: _waits(store, job_id))
    why = await why_not_running(open_console(store), await store.reads.job(job_id), 60)
    assert why is not None
    assert (why.kind, why.text) == ("waiting until", "orders waits for orders of the shop")
    assert why.until is not None


async def _waits(store: Store, job_id: int) -> str | None:
    return (await stream_of(store, job_id)).waiting_for


async def test_silent_sources_do_not_hold_up_the_others(store: Store) -> None:
    """All places but one are taken, and the loud ones come last."""
    hush = asyncio.Event()

    async def walk(source: str, cursor: Any) -> AsyncIterator[Page | NothingYet]:
        if source.startswith("silent"):
            await hush.wait()
        for page in range(cursor or 0, 3):
            yield Page([Record({"n": page})], next_cursor=page + 1, end=page == 2)

    names = [f"silent {number}" for number in range(MOST_WALKS - 1)]
    made = Follower(walk, *names, "north", "south")
    job_id = await start(store, made)
    async with working(store, made, **QUICK):
        await until(lambda: _complete(store, job_id, {"north", "south"}))
        hush.set()
        await until(lambda: _is_done(store, job_id))
    assert await state_of(store, job_id) == (JobState.DONE, 3 * (MOST_WALKS + 1), None)


async def _complete(store: Store, job_id: int, sources: set[str]) -> bool:
    streams = await store.streams.of_job(job_id)
    return sources <= {s.source for s in streams if s.state == StreamState.COMPLETE}


async def test_sources_of_one_job_are_read_at_once(store: Store) -> None:
    under_way: set[str] = set()
    most = 0
    full = asyncio.Event()

    async def walk(source: str, cursor: Any) -> AsyncIterator[Page | NothingYet]:
        nonlocal most
        under_way.add(source)
        most = max(most, len(under_way))
        if most == MOST_WALKS:
            full.set()
        await full.wait()
        under_way.discard(source)
        yield Page([Record({"of": source})], end=True)

    made = Follower(walk, *(f"shop {number}" for number in range(MOST_WALKS * 2)))
    job_id = await start(store, made)
    settings = {**QUICK, "HOLDFAST_WORKER_TARGET_SLICE_MS": "5000"}
    await work(store, made, **settings)
    assert await state_of(store, job_id) == (JobState.DONE, MOST_WALKS * 2, None)
    assert most == MOST_WALKS
