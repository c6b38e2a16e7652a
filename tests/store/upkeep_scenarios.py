"""The same for gates, workers and schedules: verbs on one row of a small table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any
from uuid import uuid4

from holdfast.features.schedules.table import Schedules
from holdfast.kernel import NewJob, NewStream, Store
from holdfast.kernel.gates.table import Passes, Want
from holdfast.kernel.record.decisions import DecisionRow
from holdfast.model import Lane
from holdfast.pipeline import Gate
from tests.store.checks import fetch, filled_job, make_job
from tests.store.scenarios import FUTURE, PAST, SCENARIOS, SCHEDULED, Scenario, scenario

_NUMBERS = count(1)  # the database's time may be the same twice


def simple_scenario(
    verb: str,
    act: Callable[[Store, str], Awaitable[Any]],
    table: str,
    column: str,
    expected: int,
    *before: Callable[[Store, str], Awaitable[Any]],
) -> None:
    """A verb on one row of a small table, with a new name each time."""

    async def prepare(store: Store) -> str:
        name = f"{verb} {next(_NUMBERS)}"
        for step in before:
            await step(store, name)
        return name

    async def check(store: Store, name: str) -> None:
        rows = await fetch(store, f"select 1 from {table} where {column} = :name", name=name)
        assert len(rows) == expected

    SCENARIOS.append(Scenario(verb, prepare, act, check))


async def _declare(store: Store, name: str) -> None:
    await store.gates.declare(Gate(name, spacing=1.0, concurrency=2))


async def _reserve(store: Store, name: str) -> None:
    assert (await store.gates.reserve(name, "one", Want(3, 3, 60, 0.1))).starts


async def _add_worker(store: Store, name: str) -> None:
    await store.workers.add_worker(name, "host", 1, [])


async def _set_schedule(store: Store, name: str) -> None:
    await Schedules(store.database).set_schedule(name, "demo", "0 3 * * *", "UTC", {}, PAST)


async def _fire(store: Store, name: str) -> None:
    for due in await Schedules(store.database).due_schedules():
        assert await Schedules(store.database).fire_schedule(due, FUTURE, SCHEDULED)


async def _skip(store: Store, name: str) -> None:
    for due in await Schedules(store.database).due_schedules():
        assert await Schedules(store.database).skip_schedule(due, FUTURE, "no such file")


GATE = ("gates", "name", 1)
WORKER = ("workers", "name", 1)
SCHEDULE = ("schedules", "name", 1)
simple_scenario("declare_gate", _declare, *GATE)
simple_scenario(
    "introduce_gate", lambda store, name: store.gates.introduce(Gate(name, concurrency=2)), *GATE
)
simple_scenario("reserve_gate", _reserve, *GATE, _declare)
simple_scenario(
    "reserve_gate",
    lambda store, name: store.gates.reserve(name, "one", Want(1, 1, 1, 0.1)),
    *GATE,
)
simple_scenario(
    "reserve_gate",
    lambda store, name: store.gates.reserve(name, "one", Want(1, 1, 60, 0.1, costs=[5.0])),
    *GATE,
    lambda store, name: store.gates.declare(Gate(name, requests=10, units=100)),
)
simple_scenario(
    "close_gate",
    lambda store, name: store.gates.close(name, 9, "busy"),
    *GATE,
    lambda store, name: store.gates.declare(Gate(name, requests=10, units=100)),
)
simple_scenario(
    "count_passes",
    lambda store, name: store.gates.count_passes(
        {(name, 7): Passes(passed=2, throttles=1)},
        "one",
        {7: [DecisionRow("concurrency", 4, 2, "throttled")]},
    ),
    *GATE,
    lambda store, name: store.gates.declare(Gate(name)),
)
simple_scenario("forget_passes", lambda store, _: store.gates.forget_passes(), *GATE, _declare)
simple_scenario("close_gate", lambda store, name: store.gates.close(name, 9, "busy"), *GATE)
simple_scenario("slow_gate", lambda store, name: store.gates.slow_down(name, 9.0), *GATE)
simple_scenario(
    "keep_slots", lambda store, name: store.gates.keep_slots(name, "one", 1), *GATE, _declare
)
simple_scenario(
    "leave_gate",
    lambda store, name: store.gates.leave_gate(name, "one"),
    "gate_holds",
    "gate",
    0,
    _declare,
    lambda store, name: store.gates.keep_slots(name, "one", 1),
)
simple_scenario("add_worker", _add_worker, *WORKER)
simple_scenario("beat", lambda store, name: store.workers.beat(name), *WORKER, _add_worker)
simple_scenario(
    "stop_worker", lambda store, name: store.workers.stop_worker(name), *WORKER, _add_worker
)
simple_scenario(
    "forget_workers", lambda store, _: store.workers.forget_workers(), *WORKER, _add_worker
)
simple_scenario("set_schedule", _set_schedule, *SCHEDULE)
simple_scenario("fire_schedule", _fire, *SCHEDULE, _set_schedule)


@scenario("fire_schedule")
class FireOnASourceWalkedBefore:
    async def prepare(store: Store) -> str:
        source = f"walked {uuid4()}"
        await store.jobs.cancel(await make_job(store, source), "tester")
        await _set_schedule(store, source)
        return source

    async def act(store: Store, source: str) -> None:
        new = NewJob("demo", source, [NewStream(source, "v1")], lane=Lane.BACKFILL)
        for due in await Schedules(store.database).due_schedules():
            await Schedules(store.database).fire_schedule(due, FUTURE, new)

    async def check(store: Store, source: str) -> None:
        jobs = await fetch(store, "select id from jobs where name = :n", n=source)
        last = await fetch(store, "select last_job_id from schedules where name = :n", n=source)
        assert [row[0] for row in jobs] == [row[0] for row in last]


simple_scenario("skip_schedule", _skip, *SCHEDULE, _set_schedule)
simple_scenario(
    "remove_schedule",
    lambda store, name: Schedules(store.database).remove_schedule(name),
    "schedules", "name", 0, _set_schedule,
)  # fmt: skip


@scenario("take_samples")
class TakeSamples:
    async def prepare(store: Store) -> int:
        return await filled_job(store, 2)

    async def act(store: Store, job_id: int) -> None:
        await store.samples.take_samples()

    async def check(store: Store, job_id: int) -> None:
        rows = await fetch(store, "select accepted from samples where job_id = :j", j=job_id)
        assert [row[0] for row in rows][:1] == [2]
