"""For every verb of the store, states in which it has something to write at each of its points.

A scenario prepares a state, acts, and checks what must be true once the act was done, if need
be twice: `act` is called again when the first was stopped at any point.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from holdfast.errors import IllegalTransition, UserError
from holdfast.features.console import open_console
from holdfast.kernel import DecisionRow, NewJob, NewStream, Settlement, Store
from holdfast.kernel.arrivals.idempotency import RequestKey
from holdfast.kernel.database.chunks import FinishedItems, NamedItems
from holdfast.model import ItemStatus, JobState, Lane
from holdfast.pipeline import Dedupe
from tests.store.checks import (
    assert_sound,
    audit_of,
    claim,
    claim_one,
    crash,
    fetch,
    filled_job,
    finished_job,
    ingest,
    keyed,
    lease_stream,
    lose,
    make_job,
    outcome_of,
    page_of,
    records,
    settle,
    settlement_of,
    state_of,
    statuses,
    work_off,
)

DONE, ERROR, PENDING = ItemStatus.DONE, ItemStatus.ERROR, ItemStatus.PENDING
FUTURE = datetime(2100, 1, 1, tzinfo=UTC)
PAST = datetime(2020, 1, 1, tzinfo=UTC)
SCHEDULED = NewJob("demo", "nightly", [NewStream("nightly {job}", "v1")], lane=Lane.BACKFILL)


@dataclass(frozen=True, slots=True)
class Scenario:
    verb: str
    prepare: Callable[[Store], Awaitable[Any]]
    act: Callable[[Store, Any], Awaitable[Any]]
    check: Callable[[Store, Any], Awaitable[Any]]


SCENARIOS: list[Scenario] = []


def scenario(verb: str) -> Callable[[type], type]:
    """A class with prepare, act and check, as a scenario of the verb."""

    def add(cls: type) -> type:
        steps = vars(cls)
        SCENARIOS.append(Scenario(verb, steps["prepare"], steps["act"], steps["check"]))
        return cls

    return add


async def drain(store: Store, job_id: int) -> None:
    """Every lease runs out, everything open is worked off, the job ends; nothing was lost."""
    accepted = len(await fetch(store, "select seq from items where job_id = :j", j=job_id))
    while await open_console(store).ranges.count(job_id):
        await lose(store)
        await work_off(store, job_id)
    await store.outcomes.complete(job_id)
    ended = await statuses(store, job_id)
    assert len(ended) == accepted and PENDING not in ended.values()
    await assert_sound(store, job_id)


async def drains(store: Store, job_id: int) -> None:
    await drain(store, job_id)
    assert await state_of(store, job_id) is JobState.DONE


@scenario("create")
class Create:
    async def prepare(store: Store) -> str:
        count = (await fetch(store, "select count(*) from jobs"))[0][0]
        await store.jobs.cancel(await make_job(store, f"old {count}"), "tester")
        return f"old {count}"

    async def act(store: Store, source: str) -> None:
        with suppress(UserError):
            streams = [NewStream(source, "v1"), NewStream("new {job}", "v1")]
            await store.jobs.create(NewJob("demo", source, streams), "tester")

    async def check(store: Store, source: str) -> None:
        rows = await fetch(
            store,
            "select j.state, count(*) from jobs j join streams s on s.job_id = j.id"
            " where j.name = :name group by j.state",
            name=source,
        )
        assert [tuple(row) for row in rows] == [("RUNNING", 2)]


@scenario("create")
class CreateForARequest:
    async def prepare(store: Store) -> RequestKey:
        request = RequestKey("ada", str(await store.jobs.now()))
        assert await store.taken_keys.begin_request(*request[:2], "same", "api") is None
        return request

    async def act(store: Store, request: RequestKey) -> None:
        with suppress(UserError):
            streams = [NewStream("asked {job}", "v1")]
            new = NewJob("demo", request.key, streams, request=request)
            await store.jobs.create(new, "tester")

    async def check(store: Store, request: RequestKey) -> None:
        made = await fetch(store, "select id from jobs where name = :name", name=request.key)
        answered = await store.taken_keys.begin_request(*request[:2], "same", "api")
        assert answered is not None and [row[0] for row in made] == [answered.made]


@scenario("pause")
class Pause:
    async def prepare(store: Store) -> int:
        return await filled_job(store, 2)

    async def act(store: Store, job_id: int) -> None:
        with suppress(IllegalTransition):
            await store.jobs.pause(job_id, "tester")

    async def check(store: Store, job_id: int) -> None:
        assert await state_of(store, job_id) is JobState.PAUSED


@scenario("resume")
class Resume:
    async def prepare(store: Store) -> int:
        job_id = await make_job(store, max_items=2)
        await ingest(store, await lease_stream(store, job_id), records(3))
        await work_off(store, job_id)
        assert await store.outcomes.complete(job_id) is JobState.DONE
        return job_id

    async def act(store: Store, job_id: int) -> None:
        await store.jobs.resume(job_id, "tester", max_items=3)

    async def check(store: Store, job_id: int) -> None:
        await ingest(store, await lease_stream(store, job_id), records(1), end=True)
        assert (await store.reads.job(job_id)).max_items == 3
        await drains(store, job_id)


async def _half_done(store: Store) -> int:
    job_id = await filled_job(store, 6)
    await settle(store, await claim_one(store, job_id, 2))
    await claim_one(store, job_id, 2)
    return job_id


async def _cancel(store: Store, job_id: int) -> None:
    with suppress(IllegalTransition):
        await store.jobs.cancel(job_id, "tester")
    for left in await store.reads.cancelled_jobs_with_ranges():
        await store.jobs.drop_ranges(left)


async def _is_cancelled(store: Store, job_id: int) -> None:
    assert await state_of(store, job_id) is JobState.CANCELLED
    assert await open_console(store).ranges.count(job_id) == 0
    assert (await store.reads.counters(job_id)).skipped == 4


for verb in ("cancel", "drop_ranges"):
    SCENARIOS.append(Scenario(verb, _half_done, _cancel, _is_cancelled))


async def _failed(store: Store) -> tuple[int, Any]:
    job_id = await finished_job(store, ERROR, DONE, ERROR)
    return job_id, await store.jobs.now()


async def _reprocess(store: Store, state: tuple[int, Any]) -> None:
    items = FinishedItems(ERROR, until=state[1])
    while (await store.jobs.reprocess(state[0], items, "tester")).opened:
        pass


async def _reprocess_items(store: Store, state: tuple[int, Any]) -> None:
    with suppress(UserError):
        await store.jobs.reprocess(state[0], NamedItems([1, 3]), "tester")


async def _all_done(store: Store, state: tuple[int, Any]) -> None:
    await drains(store, state[0])
    assert set((await statuses(store, state[0])).values()) == {DONE}


SCENARIOS.append(Scenario("reprocess", _failed, _reprocess, _all_done))
SCENARIOS.append(Scenario("reprocess", _failed, _reprocess_items, _all_done))


@scenario("act_on_dead_letter")
class Replay:
    async def prepare(store: Store) -> tuple[int, int]:
        job_id = await filled_job(store, 1)
        while not await store.outcomes.complete(job_id):
            await crash(store, job_id)
        rows = await fetch(store, "select max(id) from dead_letters")
        return job_id, rows[0][0]

    async def act(store: Store, state: tuple[int, int]) -> None:
        with suppress(UserError):
            await store.jobs.act_on_dead_letter(state[1], True, "tester")

    async def check(store: Store, state: tuple[int, int]) -> None:
        await drains(store, state[0])
        assert await statuses(store, state[0]) == {1: DONE}


for on in (True, False):

    @scenario("switch")
    class Switch:
        async def prepare(store: Store, on: bool = on) -> bool:
            await store.jobs.switch("pipeline:never", not on, "tester")
            return on

        async def act(store: Store, on: bool) -> None:
            await store.jobs.switch("pipeline:never", on, "tester")

        async def check(store: Store, on: bool) -> None:
            assert len(await store.reads.kill_switches()) == int(on)


@scenario("prepare")
class Prepare:
    async def prepare(store: Store) -> None:
        pass

    async def act(store: Store, _: None) -> None:
        await store.jobs.prepare(["create table if not exists saved (seq integer)"])

    async def check(store: Store, _: None) -> None:
        assert await fetch(store, "select seq from saved") == []


@scenario("lease_stream")
class LeaseStream:
    async def prepare(store: Store) -> int:
        return await make_job(store)

    async def act(store: Store, job_id: int) -> None:
        await lose(store)
        assert await store.ingest.lease_stream(job_id, "walker") is not None

    async def check(store: Store, job_id: int) -> None:
        assert await store.ingest.lease_stream(job_id, "walker") is None


async def _page(store: Store) -> tuple[Any, Any, Any]:
    """Keys that are new, known, failed before; then a last page."""
    dedupe = Dedupe(f"scope {uuid4()}")
    before = await lease_stream(store, await make_job(store))
    await ingest(store, before, keyed("failed"), dedupe)
    await work_off(store, before.job_id, ERROR)
    stream = await lease_stream(store, await make_job(store))
    await ingest(store, stream, keyed("known"), dedupe)
    return stream, dedupe, [page_of(stream, keyed("new", "known", "failed"))]


async def _last_page(store: Store) -> tuple[Any, Any, Any]:
    stream, dedupe, _ = await _page(store)
    return stream, dedupe, [page_of(stream, keyed("new", "known", "failed"), end=True)]


async def _first_page(store: Store) -> tuple[Any, Any, Any]:
    dedupe = Dedupe(f"scope {uuid4()}")
    stream = await lease_stream(store, await make_job(store))
    return stream, dedupe, [page_of(stream, keyed("new", "known", "failed"))]


async def _ingest(store: Store, state: tuple[Any, Any, Any]) -> None:
    stream, dedupe, pages = state
    decision = DecisionRow("ingest batch", 1, 2, "faster")
    page = pages[0]
    await store.ingest.ingest(stream, page, "walker", dedupe, decisions=[decision])


async def _is_ingested(store: Store, state: tuple[Any, Any, Any]) -> None:
    stream, dedupe, pages = state
    job_id = stream.job_id
    items = await fetch(store, "select key, seq from items where job_id = :j", j=job_id)
    assert sorted(row[0] for row in items) == ["failed", "known", "new"]
    named = await fetch(
        store,
        "select key, seq from keys where scope = :s and job_id = :j",
        s=dedupe.scope,
        j=job_id,
    )
    assert sorted(map(tuple, named)) == sorted(map(tuple, items))
    assert len(await open_console(store).jobs.decisions(job_id, 10)) == 1
    job = await store.reads.job(job_id)
    assert (job.discovered_at is not None) == pages[0].end
    if pages[0].end:
        await drains(store, job_id)


for verb in ("ingest", "take_sequence"):
    SCENARIOS.append(Scenario(verb, _page, _ingest, _is_ingested))
SCENARIOS.append(Scenario("ingest", _last_page, _ingest, _is_ingested))
SCENARIOS.append(Scenario("ingest", _first_page, _ingest, _is_ingested))


async def _held_stream(store: Store) -> Any:
    return await lease_stream(store, await make_job(store))


async def _release_stream(store: Store, stream: Any) -> None:
    await store.ingest.release_stream(stream)


async def _fail_stream(store: Store, stream: Any) -> None:
    await store.ingest.fail_stream(stream, "gone")


async def _can_be_leased(store: Store, stream: Any) -> None:
    await lease_stream(store, stream.job_id)


async def _fails(store: Store, stream: Any) -> None:
    assert await store.outcomes.complete(stream.job_id) is JobState.FAILED


async def _walked_stream(store: Store) -> Any:
    stream = await lease_stream(store, await make_job(store))
    await ingest(store, stream, records(1))
    return stream


SCENARIOS.append(Scenario("release_stream", _held_stream, _release_stream, _can_be_leased))
SCENARIOS.append(Scenario("release_stream", _walked_stream, _release_stream, _can_be_leased))
SCENARIOS.append(Scenario("fail_stream", _held_stream, _fail_stream, _fails))


async def _fresh(store: Store) -> int:
    return await filled_job(store, 3, 12)


async def _doomed(store: Store, deaths: int, again: bool, items: int) -> int:
    """A range that killed its worker this many times before, and now has another."""
    job_id = await filled_job(store, items)
    if again:
        await settle(store, await claim_one(store, job_id), PENDING)
    for _ in range(deaths):
        await crash(store, job_id)
    assert len(await claim(store, job_id, worker="doomed")) == 1
    return job_id


DOOMED: list[Callable[[Store], Awaitable[int]]] = [
    lambda store: _doomed(store, 0, False, 4),
    lambda store: _doomed(store, 1, False, 12),
    lambda store: _doomed(store, 1, True, 3),
    lambda store: _doomed(store, 4, False, 1),
]


async def _claim_some(store: Store, job_id: int) -> None:
    await claim(store, job_id, 5)


async def _free_left_behind(store: Store, job_id: int) -> None:
    await store.workers.free_left_behind()


async def _stop_worker(store: Store, job_id: int) -> None:
    await store.workers.stop_worker("doomed")


async def _lose_worker(store: Store, job_id: int) -> None:
    if not await store.workers.beat("doomed"):
        await store.workers.add_worker("doomed", "host", 1, [])
    await store.workers.lose("doomed", gone=True)


async def _free_strays(store: Store, job_id: int) -> None:
    await store.workers.free_strays("doomed", await store.workers.tokens_of("doomed"))
    assert await store.workers.tokens_of("doomed") == set()


SCENARIOS.append(Scenario("claim", _fresh, _claim_some, drains))
for doomed in DOOMED:
    SCENARIOS.append(Scenario("free_left_behind", doomed, _free_left_behind, drains))
    SCENARIOS.append(Scenario("stop_worker", doomed, _stop_worker, drains))
    SCENARIOS.append(Scenario("lose", doomed, _lose_worker, drains))
    SCENARIOS.append(Scenario("free_strays", doomed, _free_strays, drains))


async def _held(store: Store) -> Any:
    job_id = await filled_job(store, 4)
    return await claim_one(store, job_id, 2)


async def _release(store: Store, held: Any) -> None:
    await store.leases.release([held.lease])


async def _claim_drains(store: Store, held: Any) -> None:
    await drains(store, held.lease.job_id)


SCENARIOS.append(Scenario("release", _held, _release, _claim_drains))


@scenario("settle")
class Settle:
    async def prepare(store: Store) -> tuple[int, list[Settlement]]:
        """A fresh lease that continues, one that ends and an again lease, each kind of outcome."""
        job_id = await filled_job(store, 2, 6, 4)
        await settle(store, await claim_one(store, job_id, 2), PENDING)
        claims = await claim(store, job_id)
        again = next(claimed for claimed in claims if claimed.lease.again)
        part, rest = (claimed for claimed in claims if not claimed.lease.again)
        first, second, third = part.rows[:3]
        outcomes = [outcome_of(first, DONE), outcome_of(second, PENDING), outcome_of(third, ERROR)]
        settlements = [
            Settlement(part.lease, outcomes, last=False),
            settlement_of(rest),
            settlement_of(again),
        ]
        return job_id, settlements

    async def act(store: Store, state: tuple[int, list[Settlement]]) -> None:
        decision = DecisionRow("claim", 1, 2, "faster")
        await store.outcomes.settle(state[0], "one", state[1], decisions=[decision])

    async def check(store: Store, state: tuple[int, list[Settlement]]) -> None:
        await drains(store, state[0])
        counters = await store.reads.counters(state[0])
        assert (counters.done, counters.error, counters.retried) == (11, 1, 3)


@scenario("complete")
class Complete:
    async def prepare(store: Store) -> int:
        job_id = await filled_job(store, 2)
        await work_off(store, job_id)
        return job_id

    async def act(store: Store, job_id: int) -> None:
        for found in await store.reads.finishable_jobs():
            await store.outcomes.complete(found)

    async def check(store: Store, job_id: int) -> None:
        assert await state_of(store, job_id) is JobState.DONE
        actions = [entry["action"] for entry in await audit_of(store, job_id)]
        assert actions.count("finish") == 1
