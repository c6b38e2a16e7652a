"""What records that come alone leave behind on PostgreSQL: nothing, whatever is held open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

import holdfast
from holdfast.model import ItemStatus
from holdfast.store import NewJob, Store, open_store
from holdfast.store.enqueue import Addition, new_item
from tests.store.checks import (
    assert_sound,
    claim,
    execute,
    fetch,
    settle,
    work_off,
)

STANDING = NewJob("events", "events", [], standing=True)
#: Fills a tray with anything.
ANYTHING = 1


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[Store]:
    opened = await open_store(postgres_url)
    yield opened
    await opened.close()


@pytest.fixture
async def job_id(store: Store) -> int:
    return (await store.jobs.open(STANDING, "ada"))[0]


async def _add(store: Store, count: int = 1) -> None:
    for number in range(count):
        await store.additions.enqueue(Addition("events", "", [new_item({"n": number})]))


async def _turn(store: Store) -> None:
    """Twice: what is folded or moved first is seen as empty afterwards."""
    for _ in range(2):
        await store.trays.turn(ANYTHING, rest_seconds=0.0)


async def test_crash_of_the_server_does_not_change_the_tray(store: Store) -> None:
    """A sequence that wrote ahead continues there after a crash: there is no such tray."""
    ahead = "select log_cnt from tray_turns"
    assert await fetch(store, ahead) == [(0,)]
    await store.jobs.open(STANDING, "ada")
    await _add(store)
    await _turn(store)
    assert await fetch(store, ahead) == [(0,)]
    assert await fetch(store, "select last_value, is_called from tray_turns") == [(2, True)]


async def _bytes(store: Store, table: str) -> list[int]:
    """Of each tray."""
    names = [f"pg_relation_size(cast('{table}_{number}' as regclass))" for number in (1, 2, 3)]
    return list((await fetch(store, f"select {', '.join(names)}"))[0])


async def _current(store: Store) -> int:
    return int((await fetch(store, "select current_tray()"))[0][0])


async def _made_old(store: Store) -> None:
    await execute(store, "update ranges set since = since - interval '10 seconds'")


@asynccontextmanager
async def _application(url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(url)
    transaction = connection.transaction()
    await transaction.start()
    try:
        yield connection
        await transaction.commit()
    finally:
        await connection.close()


async def test_what_passed_leaves_nothing_though_a_transaction_is_held(
    store: Store, job_id: int, postgres_url: str
) -> None:
    async with _application(postgres_url) as held:
        await held.execute("select pg_current_xact_id()")
        await _add(store, 50)
        assert await work_off(store, job_id) == 50
        first = await _current(store)
        assert (await _bytes(store, "ranges"))[first - 1] > 0
        await _turn(store)
        assert await _current(store) != first
        await _turn(store)
        assert (await _bytes(store, "ranges"))[first - 1] == 0
        assert (await _bytes(store, "counters"))[first - 1] == 0
    counters = await store.reads.counters(job_id)
    assert (counters.accepted, counters.done) == (50, 50)
    await assert_sound(store, job_id)


async def test_trays_are_filled_in_turn_and_only_when_there_is_something(
    store: Store, job_id: int
) -> None:
    filled = []
    for _ in range(7):
        await _add(store)
        filled.append(await _current(store))
        await work_off(store, job_id)
        await _turn(store)
    assert filled == [1, 2, 1, 2, 1, 2, 1]
    current = await _current(store)
    await store.trays.turn()
    assert await _current(store) == current
    assert (await store.reads.counters(job_id)).accepted == 7


async def test_a_tray_rests_before_it_is_truncated(
    store: Store, job_id: int, postgres_url: str
) -> None:
    """A snapshot that is older than a truncation, such as that of a backup, would miss rows."""
    await _add(store, 5)
    await work_off(store, job_id)
    await store.trays.turn(ANYTHING)
    async with _application(postgres_url) as backup:
        await backup.execute("set transaction isolation level repeatable read")
        await backup.execute("select 1")
        for _ in range(3):
            await store.trays.turn(ANYTHING)
        assert await backup.fetchval("select sum(accepted) from counters") == 5
    assert (await _bytes(store, "ranges"))[0] > 0
    await _turn(store)
    assert (await _bytes(store, "ranges"))[0] == 0


async def test_trays_are_looked_at_as_they_are_whatever_the_server_s_default(
    postgres_url: str,
) -> None:
    name = postgres_url.rpartition("/")[2].partition("?")[0]
    connection = await asyncpg.connect(postgres_url)
    set_default = f'alter database "{name}" set default_transaction_isolation to serializable'
    await connection.execute(set_default)
    await connection.close()
    opened = await open_store(postgres_url)
    async with opened.database.driver.transaction("test") as tx:
        level = await tx.fetch("select current_setting('transaction_isolation')")
    await opened.close()
    assert level[0][0] == "read committed"


async def test_a_leased_range_that_is_moved_can_be_settled(store: Store, job_id: int) -> None:
    await _add(store)
    (claimed,) = await claim(store, job_id, 1)
    await _turn(store)
    await _made_old(store)
    await _turn(store)
    assert await fetch(store, "select tray from ranges") == [(0,)]
    assert (await _bytes(store, "ranges"))[0] == 0
    assert await settle(store, claimed) == []
    await assert_sound(store, job_id)


async def test_settling_while_the_range_is_moved_is_not_a_lost_lease(
    store: Store, job_id: int, postgres_url: str
) -> None:
    """PostgreSQL ends a statement that waited for a row which was moved; it is run again."""
    await _add(store)
    (claimed,) = await claim(store, job_id, 1)
    async with _application(postgres_url) as mover:
        await mover.execute("update ranges set tray = 0")
        settling = asyncio.create_task(settle(store, claimed))
        await _await_waiting(store)
    assert await settling == []
    assert (await store.reads.counters(job_id)).done == 1
    await assert_sound(store, job_id)


async def _await_waiting(store: Store) -> None:
    while not await fetch(
        store, "select 1 from pg_stat_activity where wait_event_type = 'Lock' limit 1"
    ):
        await asyncio.sleep(0.01)


async def test_a_tray_with_a_backlog_stays_as_it_is(store: Store, job_id: int) -> None:
    rows = [new_item({"n": number}) for number in range(250)]
    for row in rows:
        await store.additions.enqueue(Addition("events", "", [row]))
    await _turn(store)
    await _made_old(store)
    await _turn(store)
    assert {row[0] for row in await fetch(store, "select tray from ranges")} == {1}
    assert await work_off(store, job_id) == 250
    await _turn(store)
    assert (await _bytes(store, "ranges"))[0] == 0
    await assert_sound(store, job_id)


async def test_an_application_that_holds_a_tray_holds_nobody_up(
    store: Store, job_id: int, postgres_url: str
) -> None:
    async with _application(postgres_url) as application:
        await holdfast.aenqueue(application, "events", [{"late": 1}])
        await _turn(store)
        held, filled = 1, set()
        for _ in range(6):
            await _add(store)
            assert await work_off(store, job_id) == 1
            await _turn(store)
            filled.add(await _current(store))
            assert (await _bytes(store, "ranges"))[held - 1] > 0
        assert filled == {2, 3}, "the others are emptied in turn"
    assert await work_off(store, job_id) == 1
    await _turn(store)
    assert (await _bytes(store, "ranges"))[held - 1] == 0
    assert (await store.reads.counters(job_id)).accepted == 7
    await assert_sound(store, job_id)


async def test_a_record_that_is_due_later_is_not_in_a_tray(store: Store, job_id: int) -> None:
    due = (await store.jobs.now()).replace(year=2099)
    await store.additions.enqueue(Addition("events", "", [new_item({"n": 1})], due))
    keyed = [new_item({"n": 2}, "two")]
    await store.additions.enqueue(Addition("events", "", keyed, due))
    assert await fetch(store, "select tray from ranges") == [(0,), (0,)]


async def test_counters_of_a_deleted_job_are_not_folded(store: Store, job_id: int) -> None:
    await _add(store)
    await work_off(store, job_id)
    await execute(store, "delete from jobs where id = :j", j=job_id)
    await _turn(store)
    assert await fetch(store, "select 1 from counters where job_id = :j", j=job_id) == []


async def test_counts_that_come_while_a_tray_is_folded_are_kept(
    store: Store, job_id: int, postgres_url: str
) -> None:
    """An application that began before the turn commits while the fold waits for another job."""
    other, _ = await store.jobs.open(NewJob("others", "others", [], standing=True), "ada")
    await _add(store)
    async with _application(postgres_url) as holder, _application(postgres_url) as late:
        await holdfast.aenqueue(late, "others", [{"n": 1}])
        await store.trays.turn(ANYTHING, rest_seconds=0.0)
        assert await _current(store) == 2
        await holder.execute("select 1 from jobs where id = $1 for update", job_id)
        folding = asyncio.create_task(store.trays.turn(ANYTHING, rest_seconds=0.0))
        await _await_waiting(store)
    await folding
    await _turn(store)
    assert [(await store.reads.counters(each)).accepted for each in (job_id, other)] == [1, 1]


class Stop(Exception):
    """The process was stopped here."""


@pytest.mark.parametrize("step", ["turn_to_tray", "fold_tray", "move_left_behind", "empty_tray"])
async def test_a_turn_that_is_stopped_before_its_commit_loses_nothing(
    store: Store, job_id: int, postgres_url: str, step: str
) -> None:
    def stop(verb: str, query: str) -> None:
        if (verb, query) == (step, "commit"):
            raise Stop

    await _add(store, 3)
    (claimed,) = await claim(store, job_id, 1)
    await settle(store, claimed, ItemStatus.DONE)
    if step != "turn_to_tray":
        await _turn(store)
        await _made_old(store)
    faulty = await open_store(postgres_url, fault=stop)
    with pytest.raises(Stop):
        await _turn(faulty)
    await faulty.close()
    await assert_sound(store, job_id)
    await _turn(store)
    assert await work_off(store, job_id) == 2
    assert (await store.reads.counters(job_id)).accepted == 3
    await assert_sound(store, job_id)


async def test_nothing_is_lost_while_trays_turn_under_load(
    store: Store, job_id: int, postgres_url: str
) -> None:
    """Applications, two workers and two processes that turn, all at once."""
    records, applications, ended = 120, 3, asyncio.Event()

    async def produce() -> None:
        connection = await asyncpg.connect(postgres_url)
        for number in range(records):
            await holdfast.aenqueue(connection, "events", [{"n": number}], own_transaction=True)
        await connection.close()

    async def turn() -> None:
        while not ended.is_set():
            await _turn(store)
            await store.counter_rows.fold()

    async def work() -> int:
        done = 0
        while not ended.is_set() or await fetch(store, "select 1 from ranges limit 1"):
            done += await work_off(store, job_id)
            await asyncio.sleep(0)
        return done

    others = [asyncio.create_task(task) for task in (turn(), turn(), work(), work())]
    await asyncio.gather(*(produce() for _ in range(applications)))
    ended.set()
    counts = await asyncio.gather(*others)
    assert sum(count for count in counts if count) == records * applications
    counters = await store.reads.counters(job_id)
    assert counters.accepted == counters.done == records * applications
    await assert_sound(store, job_id)


async def test_leases_fit_on_the_page_of_their_range(
    store: Store, job_id: int, postgres_url: str
) -> None:
    """Even if old versions cannot be removed: elsewhere each index would get another entry."""
    async with _application(postgres_url) as held:
        await held.execute("select pg_current_xact_id()")
        await _add(store, 200)
        pages = "select id, (cast(cast(ctid as text) as point))[0] from ranges"
        before = {tuple(row) for row in await fetch(store, pages)}
        assert len({page for _, page in before}) > 1
        assert len(await claim(store, job_id)) == 200
        assert {tuple(row) for row in await fetch(store, pages)} == before
