"""Everything that meetings writes is stopped at every write: nothing is half done, and the next try
does it. The writes are read from its source, so that none is left out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.kernel import NewJob, NewStream, Store, open_store
from holdfast.model import ItemStatus, Job, JobState, StreamState, StreamStatus
from holdfast.pipeline import Settled, Tx
from holdfast_meetings.municipalities import checked, write_municipality
from holdfast_meetings.options import MeetingsOptions
from holdfast_meetings.pipeline import Meetings
from holdfast_meetings.rows import draft_of
from tests.store.checks import fetch, tables_of
from tests.store.fault_points import extension_points

OPTIONS = MeetingsOptions()
MEETINGS = Meetings(OPTIONS)
COLLECTION = {
    "municipality_id": 1,
    "subdomain": "a.ca",
    "document_type": "minutes",
    "url": "https://a.example",
    "mode": "full",
    "window": ["2026-01-01", "2026-12-31"],
}
NOW = datetime(2026, 1, 1, tzinfo=UTC)
Act = Callable[[Tx], Awaitable[Any]]


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


def page(name: str, number: int, text: str = "words") -> dict[str, Any]:
    return {"id": name, "meeting": "Council", "date": "2026-01-01", "page": number, "text": text}


def save(job: Job, rows: Iterable[dict[str, Any]], *, rejected: Iterable[str] = ()) -> Act:
    settled = [
        Settled(seq, ItemStatus.DONE, row, None, job, effects=draft_of(row))
        for seq, row in enumerate(rows, 1)
    ]
    settled += [
        Settled(seq, ItemStatus.ERROR, page(name, 0), None, job)
        for seq, name in enumerate(rejected, 100)
    ]
    return lambda tx: MEETINGS.save(tx, settled)


def note(job: Job, ids: Iterable[str]) -> Act:
    notes = {"first": True, "after": None, "upto": None, "ids": list(ids)}
    return lambda tx: MEETINGS.note(tx, job, notes, 0)


def conclude(job: Job, rows: int) -> Act:
    cursor = {"phase": "inventory", "round": 1, "since": 1, "rows": rows, "site_count": rows}
    stream = StreamStatus(
        1, "a.ca:minutes", "full", StreamState.COMPLETE, 1, cursor, 1, rows, job.id,
        JobState.RUNNING, NOW, None, False, False, None,
    )  # fmt: skip
    return lambda tx: MEETINGS.conclude(tx, job, stream)


async def _jobs(store: Store) -> list[Job]:
    new = NewJob("meetings", "minutes", [NewStream("minutes {job}", "v1")], options=COLLECTION)
    return [await store.reads.job(await store.jobs.create(new, "tester")) for _ in range(2)]


def steps(first: Job, second: Job) -> list[Act]:
    """Each begins with what the one before it wrote."""
    values = checked({"subdomain": "a.ca", "url": "https://a.example"}, None, OPTIONS)
    many = [page(f"a{number:02}", number) for number in range(1, 21)]
    shown = ["b01", "b21", *(f"a{number:02}" for number in range(2, 20))]

    async def rename(tx: Tx) -> None:
        (row,) = await tx.fetch("meetings_municipality", {"subdomain": "a.ca"})
        assert row[2] == values["name"]
        await write_municipality(tx, row, {**values, "name": "A town"})  # type: ignore[arg-type]

    return [
        lambda tx: write_municipality(tx, None, values),
        rename,
        save(first, many, rejected=["r"]),
        # Read again by the site; and two rows for one page.
        save(second, [page("b01", 1, "new"), page("b21", 21, "x"), page("a21", 21, "y")]),
        # One that is missing, one that vanished, an older one that is back, a reject that is gone.
        note(second, [*shown[1:], "a01", "m"]),
        conclude(second, 21),
        # All but one that vanished.
        note(second, shown),
        conclude(second, 20),
        MEETINGS.tend,
        MEETINGS.tend,
        MEETINGS.tend,
    ]


async def _contents(store: Store) -> dict[str, list[Any]]:
    tables = sorted(name for name in await tables_of(store) if name.startswith("meetings_"))
    return {
        table: sorted(map(repr, map(tuple, await fetch(store, f"select * from {table}"))))
        for table in tables
    }


@pytest.fixture
async def fault() -> Fault:
    return Fault()


async def test_write_that_is_stopped_anywhere_is_done_by_the_next_try(
    database_url: str, store: Store, fault: Fault
) -> None:
    faulty = await open_store(database_url, fault=fault)
    reached: set[str] = set()
    for number, act in enumerate(steps(*await _jobs(store))):
        before = await _contents(store)
        fault.point, fault.passed = "commit", []
        with pytest.raises(Stop):
            await faulty.database.write("test", act)
        points = set(fault.passed)
        assert await _contents(store) == before
        for fault.point in sorted(points):
            with pytest.raises(Stop):
                await faulty.database.write("test", act)
            assert await _contents(store) == before, f"step {number} at {fault.point}"
        await store.database.write("test", act)
        assert await _contents(store) != before, f"step {number} writes something"
        reached |= points
    await faulty.close()
    assert extension_points("meetings") - reached == set(), "no step comes to these writes"


def test_writes_are_read_from_the_source() -> None:
    assert extension_points("meetings") >= {
        "copy meetings_pages", "meetings_add_counts", "meetings_add_differences",
        "meetings_vanish_pages", "meetings_change_municipality", "meetings_search_add",
    }  # fmt: skip
