"""The same for what pipelines decide: plans, conclusions, and their work in the background."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from holdfast.errors import UnfitState
from holdfast.features.schedules.table import Schedules
from holdfast.kernel import NewJob, NewStream, Store
from holdfast.kernel.arrivals.idempotency import RequestKey
from holdfast.kernel.database.driver import Transaction
from holdfast.model import Job, JobState, StreamStatus
from holdfast.orders import (
    Conclusion,
    Mark,
    Order,
    Planned,
    Reopen,
    Resume,
    Start,
    Unproven,
    Verified,
)
from holdfast.pipeline import Gate, Pipeline, StreamStatuses, Tx
from tests.store.checks import (
    execute,
    fetch,
    ingest,
    lease_stream,
    make_job,
    records,
    spelled,
    state_of,
    work_off,
)
from tests.store.message_scenarios import SCENARIOS, scenario
from tests.store.scenarios import FUTURE, PAST, Scenario

__all__ = ["SCENARIOS"]


@dataclass(frozen=True, slots=True)
class DemoPlanner:
    pipeline: Pipeline
    actor: str = "tester"

    def make_job(self, start: Start) -> NewJob:
        return NewJob("demo", start.name, [NewStream(start.source, "v1")], mode=start.mode)


class Demo(Pipeline):
    """Orders what the sources need, and concludes as it is given."""

    name = "demo"

    def __init__(self, sources: Sources, conclusion: Conclusion | Exception | None = None) -> None:
        super().__init__()
        self._sources = sources
        self._conclusion = conclusion

    async def process(self, record: Any, ctx: Any) -> Any:
        return record

    async def plan(self, tx: Tx, request: Any, streams: StreamStatuses, now: datetime) -> Planned:
        sources = self._sources
        known = await streams(sources.all)
        return Planned(sources.orders(known))

    async def conclude(self, tx: Tx, job: Job, stream: StreamStatus) -> Conclusion:
        assert self._conclusion is not None and job.id == stream.job_id
        if isinstance(self._conclusion, Exception):
            raise self._conclusion
        return self._conclusion


class Sources:
    """One that is new, one whose job failed, one whose job runs, one that was read before."""

    def __init__(self, name: str) -> None:
        self.new, self.failed, self.running = f"new {name}", f"failed {name}", f"running {name}"
        self.read = f"read {name}"
        self.all = [self.new, self.failed, self.running, self.read]

    async def prepare(self, store: Store) -> None:
        read = NewJob("demo", "before", [NewStream(self.read, "v1")], mode="full")
        await store.jobs.cancel(await store.jobs.create(read, "tester"), "tester")
        failed = await make_job(store, self.failed)
        await store.ingest.fail_stream(await lease_stream(store, failed), "gone")
        await store.outcomes.complete(failed)
        await make_job(store, self.running)

    def orders(self, streams: Sequence[StreamStatus]) -> list[Order]:
        """What is left to be done: deciding again after it was done gives no job twice."""
        by_source = {stream.source: stream for stream in streams}
        orders: list[Order] = [Mark(by_source[self.running].stream_id, True, True)]
        if self.new not in by_source:
            gates = (Gate(f"gate of {self.new}", spacing=1.0),)
            orders.append(Start(self.new, "full", self.new, gates=gates))
        if by_source[self.read].job_state is JobState.CANCELLED:
            orders.append(Start(self.read, "full", self.read))
        if by_source[self.failed].job_state is JobState.FAILED:
            orders.append(Resume(by_source[self.failed].job_id))
        return orders

    async def check(self, store: Store) -> None:
        streams = {one.source: one for one in await store.plans.streams("demo")}
        assert streams[self.new].job_state is JobState.RUNNING
        assert streams[self.failed].job_state is JobState.RUNNING
        assert streams[self.read].job_state is JobState.RUNNING
        running = streams[self.running]
        assert running.force_full and running.rerun_requested
        assert not streams[self.new].force_full
        for name in (self.new, self.read):
            assert len(await fetch(store, "select id from jobs where name = :n", n=name)) == 1


async def _sources(store: Store) -> Sources:
    sources = Sources(str(await store.jobs.now()))
    await sources.prepare(store)
    return sources


@scenario("plan")
class Plan:
    async def prepare(store: Store) -> Sources:
        sources = await _sources(store)
        await store.taken_keys.begin_request("ada", sources.new, "a request", "api")
        return sources

    async def act(store: Store, sources: Sources) -> None:
        with suppress(UnfitState):  # carried out before
            key = RequestKey("ada", sources.new)
            await store.plans.plan(DemoPlanner(Demo(sources)), {}, key)

    async def check(store: Store, sources: Sources) -> None:
        await sources.check(store)
        again = await store.taken_keys.begin_request("ada", sources.new, "a request", "api")
        assert again is not None and again.made is not None


@scenario("fire_plan")
class FirePlan:
    async def prepare(store: Store) -> Sources:
        sources = await _sources(store)
        await Schedules(store.database).set_schedule(
            sources.new, "demo", "0 3 * * *", "UTC", {}, PAST
        )
        return sources

    async def act(store: Store, sources: Sources) -> None:
        for due in await Schedules(store.database).due_schedules():
            await Schedules(store.database).fire_plan(due, FUTURE, DemoPlanner(Demo(sources)))

    async def check(store: Store, sources: Sources) -> None:
        await sources.check(store)
        (last,) = await fetch(
            store, "select last_job_id from schedules where name = :n", n=sources.new
        )
        assert last[0] is not None


@scenario("tend")
class Tend:
    async def prepare(store: Store) -> None:
        await execute(store, "insert into secrets values ('tended', 'no') on conflict do nothing")

    async def act(store: Store, _: Any) -> None:
        async def tend(tx: Transaction) -> bool:
            await tx.execute(spelled(store, "delete from secrets where name = 'tended'"))
            return False

        await store.plans.tend(tend)

    async def check(store: Store, _: Any) -> None:
        assert not await fetch(store, "select 1 from secrets where name = 'tended'")


class Concluding:
    """A job whose pipeline concludes, with nothing left to do, and what follows it."""

    def __init__(self, job_id: int, sources: Sources, conclusion: Conclusion | Exception) -> None:
        self.job_id = job_id
        self._sources = sources
        self._conclusion = conclusion

    async def complete(self, store: Store) -> None:
        planner = DemoPlanner(Demo(self._sources, self._conclusion))
        await store.outcomes.complete(self.job_id, planner)

    async def stream(self, store: Store) -> Sequence[Any]:
        (row,) = await fetch(
            store,
            "select state, cursor, verified_at, actual_count from streams where job_id = :j",
            j=self.job_id,
        )
        return row

    async def is_right(self, store: Store) -> None:
        state, cursor, verified_at, actual_count = await self.stream(store)
        ended = await state_of(store, self.job_id)
        if isinstance(self._conclusion, Verified):
            assert (ended, state, actual_count) == (JobState.DONE, "COMPLETE", 2)
            assert verified_at is not None
            await self._sources.check(store)
        elif isinstance(self._conclusion, Reopen):
            assert (ended, state) == (JobState.RUNNING, "RUNNING")
            assert '"again"' in cursor
        elif isinstance(self._conclusion, Exception):
            assert (ended, state) == (JobState.FAILED, "COMPLETE")
        else:
            assert (ended, state) == (JobState.FAILED, "FAILED")


async def _concluding(store: Store, conclusion: Conclusion | Exception) -> Concluding:
    sources = await _sources(store)
    new = NewJob("demo", "concluded", [NewStream("rows {job}", "v1")], concludes=True)
    job_id = await store.jobs.create(new, "tester")
    await ingest(store, await lease_stream(store, job_id), records(2), end=True)
    await work_off(store, job_id)
    assert await store.outcomes.complete(job_id) is None
    return Concluding(job_id, sources, conclusion)


for _verb, _conclusion in (
    ("complete", Verified(2, 2, proven=True)),
    ("complete", Reopen("again", 1.0)),
    ("complete", Unproven("it cannot be", "again")),
    ("fail_conclusion", KeyError("a mistake in the pipeline")),
):

    async def _prepare(
        store: Store, conclusion: Conclusion | Exception = _conclusion
    ) -> Concluding:
        return await _concluding(store, conclusion)

    async def _act(store: Store, concluding: Concluding) -> None:
        await concluding.complete(store)

    async def _check(store: Store, concluding: Concluding) -> None:
        await concluding.is_right(store)

    SCENARIOS.append(Scenario(_verb, _prepare, _act, _check))
