"""Everything that posts writes is stopped at every write: nothing is half done, and the next try
does it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import orjson
import pytest

from holdfast.errors import Failed
from holdfast.kernel import Store, open_store
from holdfast.model import ItemStatus, Job, JobState
from holdfast.pipeline import Settled
from pipelines.posts.tests.desk import Desk
from pipelines.posts.tests.scene import failed_post, post
from tests.store.checks import fetch, tables_of

Act = Callable[[str], Awaitable[Any]]


class Stop(Exception):
    """The process was stopped here."""


class Fault:
    def __init__(self) -> None:
        self.point: str | None = None
        self.passed: list[str] = []

    def __call__(self, verb: str, query: str) -> None:
        self.passed.append(query)
        if query == self.point:
            raise Stop(f"{verb} at {query}")


@pytest.fixture
def fault() -> Fault:
    return Fault()


@pytest.fixture
async def desk(database_url: str, fault: Fault) -> AsyncIterator[Desk]:
    store = await open_store(database_url, fault=fault)
    yield Desk(store)
    await store.close()


async def _everything(store: Store) -> dict[str, Any]:
    tables = sorted(name for name in await tables_of(store) if name.startswith("posts_"))
    tables += ["items", "outbox", "jobs"]
    return {name: sorted(map(str, await fetch(store, f"select * from {name}"))) for name in tables}


async def _nothing() -> None:
    """For acts that need no preparation."""


async def _check(
    desk: Desk, fault: Fault, act: Act, prepare: Callable[[], Awaitable[None]] = _nothing
) -> set[str]:
    """Runs an act with each of its write points failing, then whole; returns the points."""
    await prepare()
    fault.passed.clear()
    await act("dry")
    points = [point for point in dict.fromkeys(fault.passed) if point != "committed"]
    for number, point in enumerate(points):
        await prepare()
        before = await _everything(desk.store)
        fault.point = point
        with pytest.raises(Stop):
            await act(f"try{number}")
        fault.point = None
        assert await _everything(desk.store) == before, point
        await act(f"try{number}")
        assert await _everything(desk.store) != before, point
    return set(points)


async def test_taking_an_event(desk: Desk, fault: Fault) -> None:
    async def take(name: str) -> None:
        payload = {"job_id": f"proj_{name}-brand-0", "project_id": f"proj_{name}"}
        await desk.take(desk.event(name, [post(1), post(2)], **payload))

    points = await _check(desk, fault, take)
    assert {"posts_take_event", "posts_add_batch", "add_job"} <= points


async def test_setting_an_event_aside(desk: Desk, fault: Fault) -> None:
    async def take(name: str) -> None:
        await desk.take(desk.event(name, b"{"))

    assert await _check(desk, fault, take) == {"posts_set_aside_event", "commit"}


async def _settled(desk: Desk, name: str) -> list[Settled]:
    """The items of a batch, processed but not settled."""
    await desk.take(desk.event(name, [post(f"{name}1"), failed_post(f"{name}2", "TIMEOUT"), {}]))
    rows = await fetch(
        desk.store,
        "select seq, input from items where seq > (select coalesce(max(seq), 0) - 3 from items)"
        " order by seq",
    )
    job = Job(1, "posts", "posts", JobState.RUNNING)
    settled = []
    for seq, text in rows:
        row = orjson.loads(text)
        try:
            done = await desk.pipeline.process(row, None)  # type: ignore[arg-type]
        except Failed as error:
            settled.append(
                Settled(seq, ItemStatus.ERROR, row, None, job, row, error.code, error.message)
            )
        else:
            settled.append(
                Settled(seq, ItemStatus.DONE, row, done.result, job, row, effects=done.effects)
            )
    return settled


async def test_settling_a_batch(desk: Desk, fault: Fault) -> None:
    prepared: dict[str, list[Settled]] = {}
    for name in ("dry", *(f"try{number}" for number in range(20))):
        prepared[name] = await _settled(desk, name)
    fault.passed.clear()

    async def save(name: str) -> None:
        async def write(tx: Any) -> bool:
            await desk.pipeline.save(tx, prepared[name])
            return False

        await desk.store.plans.tend(write)

    points = await _check(desk, fault, save)
    expected = ("insert", "add_errors", "change_days", "change_error_days", "add_items",
                "set_counts")  # fmt: skip
    assert {f"posts_{name}" for name in expected} <= points
    assert "send_message" in points


async def test_background_work(desk: Desk, fault: Fault) -> None:
    numbers = iter(range(10, 100))

    async def change(tx: Any) -> bool:
        day = ("proj_x", f"2026-01-{next(numbers)}", "tiktok")
        await tx.take_many("posts_change_days", [(*day, "NEUTRAL", "LEAD", "LOW", 1, 0, 0.5)])
        await tx.take_many("posts_change_error_days", [(*day, "TIMEOUT", "network", 1)])
        await tx.take("posts_release_events", {"state": "WAITING", "key": None})
        return False

    async def prepare() -> None:
        await desk.store.plans.tend(change)

    async def tend(_: str) -> None:
        await desk.store.plans.tend(desk.pipeline.tend)

    missing = desk.event("missing", b"")
    desk.batches.clear()
    await desk.take(missing)
    points = await _check(desk, fault, tend, prepare)
    expected = {
        "posts_put_off_events",
        "posts_add_to_days",
        "posts_forget_day_changes",
        "posts_add_to_error_days",
        "posts_forget_error_day_changes",
        "send_message",
    }
    assert expected <= points
