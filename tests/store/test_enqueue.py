"""Records from applications: in their transaction, on every library."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import asyncpg
import orjson
import psycopg
import psycopg.rows
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

import holdfast
from holdfast.errors import NotThere, UnfitState, UserError
from holdfast.features.console import open_console
from holdfast.kernel import NewJob, NewStream, Store
from holdfast.kernel.arrivals.enqueue import Addition
from holdfast.model import ItemStatus
from holdfast.reading import Dedupe, Reading
from holdfast_client.records import new_item
from tests.store.checks import (
    assert_sound,
    claim,
    fetch,
    ingest,
    items_of,
    lease_stream,
    records,
    seqs_of,
    settle,
    work_off,
)

Enqueue = Callable[..., Awaitable[holdfast.Enqueued]]
HOUR = timedelta(hours=1)
RIGHTS_PAGE = Path(__file__).parents[2] / "docs/how-to/add-records-from-an-application.md"
STANDING = NewJob("events", "events", [NewStream("rows {job}", "v1")], standing=True)


class Rollback(Exception):
    """The application changed its mind."""


@asynccontextmanager
async def _sqlite3(url: str) -> AsyncIterator[Enqueue]:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
        yield _direct(connection)


@asynccontextmanager
async def _psycopg(url: str) -> AsyncIterator[Enqueue]:
    with psycopg.connect(url) as connection:
        yield _direct(connection)


@asynccontextmanager
async def _psycopg_async(url: str) -> AsyncIterator[Enqueue]:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        yield _awaited(connection)


@asynccontextmanager
async def _asyncpg(url: str) -> AsyncIterator[Enqueue]:
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            yield _awaited(connection)
    finally:
        await connection.close()


@asynccontextmanager
async def _sqlalchemy(url: str) -> AsyncIterator[Enqueue]:
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    try:
        with engine.begin() as connection:
            yield _direct(connection)
    finally:
        engine.dispose()


@asynccontextmanager
async def _sqlalchemy_session(url: str) -> AsyncIterator[Enqueue]:
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    try:
        with Session(engine) as session, session.begin():
            yield _direct(session)
    finally:
        engine.dispose()


@asynccontextmanager
async def _sqlalchemy_async(url: str) -> AsyncIterator[Enqueue]:
    engine = create_async_engine(url.replace("postgresql:", "postgresql+asyncpg:"))
    try:
        async with AsyncSession(engine) as session, session.begin():
            yield _awaited(session)
    finally:
        await engine.dispose()


@asynccontextmanager
async def _sqlalchemy_psycopg_async(url: str) -> AsyncIterator[Enqueue]:
    engine = create_async_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    try:
        async with engine.begin() as connection:
            yield _awaited(connection)
    finally:
        await engine.dispose()


def _direct(connection: Any) -> Enqueue:
    async def enqueue(*args: Any, **options: Any) -> holdfast.Enqueued:
        return holdfast.enqueue(connection, "events", *args, **options)

    return enqueue


def _awaited(connection: Any) -> Enqueue:
    async def enqueue(*args: Any, **options: Any) -> holdfast.Enqueued:
        return await holdfast.aenqueue(connection, "events", *args, **options)

    return enqueue


LIBRARIES = {
    "sqlite": (_sqlite3, _sqlalchemy, _sqlalchemy_session),
    "postgres": (
        _psycopg, _psycopg_async, _asyncpg, _sqlalchemy, _sqlalchemy_session, _sqlalchemy_async,
        _sqlalchemy_psycopg_async,
    ),
}  # fmt: skip


@asynccontextmanager
async def _sqlite3_bytes(url: str) -> AsyncIterator[Enqueue]:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
        connection.text_factory = bytes
        connection.row_factory = lambda cursor, row: {"row": row}
        yield _direct(connection)


@asynccontextmanager
async def _sqlalchemy_begins_by_itself(url: str) -> AsyncIterator[Enqueue]:
    """As SQLAlchemy's manual advises for savepoints on SQLite."""
    engine = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT")
    sqlalchemy.event.listen(engine, "begin", lambda begun: begun.exec_driver_sql("begin"))
    with engine.connect() as connection:
        yield _direct(connection)
        connection.exec_driver_sql("commit")
    engine.dispose()


@asynccontextmanager
async def _psycopg_dicts(url: str) -> AsyncIterator[Enqueue]:
    with psycopg.connect(url, row_factory=psycopg.rows.dict_row) as connection:
        yield _direct(connection)


@asynccontextmanager
async def _psycopg_pipeline(url: str) -> AsyncIterator[Enqueue]:
    with psycopg.connect(url) as connection, connection.pipeline():
        yield _direct(connection)


@asynccontextmanager
async def _asyncpg_json(url: str) -> AsyncIterator[Enqueue]:
    connection = await asyncpg.connect(url)
    codec = {"encoder": json.dumps, "decoder": json.loads, "schema": "pg_catalog"}
    await connection.set_type_codec("json", **codec)
    async with connection.transaction():
        yield _awaited(connection)
    await connection.close()


@asynccontextmanager
async def _raw_connection(url: str) -> AsyncIterator[Enqueue]:
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with closing(engine.raw_connection()) as connection:
        yield _direct(connection)
        connection.commit()
    engine.dispose()


@asynccontextmanager
async def _sqlalchemy_streaming(url: str) -> AsyncIterator[Enqueue]:
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        yield _direct(connection.execution_options(stream_results=True, yield_per=10))
    engine.dispose()


PECULIAR = {
    "sqlite": (
        _sqlite3_bytes,
        _sqlalchemy_begins_by_itself,
        _raw_connection,
        _sqlalchemy_streaming,
    ),
    "postgres": (
        _psycopg_dicts,
        _psycopg_pipeline,
        _asyncpg_json,
        _raw_connection,
        _sqlalchemy_streaming,
    ),
}


def libraries(store: Store) -> Any:
    return LIBRARIES[store.database.driver.dialect]


async def test_every_library_adds_records_with_the_commit_and_none_without(
    store: Store, database_url: str
) -> None:
    job_id, _ = await store.jobs.open(STANDING, "ada")
    expected = []
    for library in libraries(store):
        name = library.__name__
        with pytest.raises(Rollback):
            async with library(database_url) as enqueue:
                await enqueue([{"lost": name}])
                await enqueue([{"key": name, "lost": 1}], key="key")
                raise Rollback
        async with library(database_url) as enqueue:
            rows = [{"library": name, "n": number, "text": "ünï\0"} for number in range(3)]
            assert await enqueue(rows) == (job_id, 3, 0)
            assert await enqueue([]) == (job_id, 0, 0)
            assert await enqueue([{"key": name}, {"key": name}], key="key") == (job_id, 1, 1)
            expected += [*rows, {"key": name}]
        await assert_sound(store, job_id)
    items = await items_of(store, job_id)
    assert [orjson.loads(item.input) for item in items] == expected
    assert await work_off(store, job_id) == len(expected)


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_role_with_the_documented_rights_adds_records(
    store: Store, database_url: str
) -> None:
    job_id, _ = await store.jobs.open(STANDING, "ada")
    grants = re.findall(r"^grant .*;$", RIGHTS_PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    with psycopg.connect(database_url) as connection:
        connection.execute("create role shop login")
        try:
            for grant in grants:
                connection.execute(grant)
            connection.execute("set role shop")
            assert holdfast.enqueue(connection, "events", [{"n": 1}, {"n": 2}]).accepted == 2
            keyed = [{"n": 3}, {"n": 3}]
            assert holdfast.enqueue(connection, "events", keyed, key="n") == (job_id, 1, 1)
            later = datetime.now(UTC) + HOUR
            assert holdfast.enqueue(connection, "events", [{"n": 4}], run_at=later).accepted == 1
            connection.execute("reset role")
        finally:
            connection.execute("drop owned by shop")
            connection.execute("drop role shop")
    assert await work_off(store, job_id) == 3


async def test_a_key_is_accepted_again_once_its_item_failed_or_its_content_changed(
    store: Store, database_url: str
) -> None:
    dedupe = Dedupe("orders", changed="skip")
    new = NewJob("events", "events", [], reading=Reading(dedupe=dedupe), standing=True)
    job_id, _ = await store.jobs.open(new, "ada")

    async def add(**row: Any) -> tuple[int, int]:
        async with libraries(store)[0](database_url) as enqueue:
            return (await enqueue([row], key=lambda row: str(row["order"])))[1:]

    assert await add(order=1) == (1, 0)
    assert await add(order=1, changed=True) == (0, 1)
    assert await work_off(store, job_id, ItemStatus.ERROR) == 1
    assert await add(order=1) == (1, 0)
    scopes = await fetch(store, "select scope, key from keys")
    assert scopes == [("orders", "1")]


async def test_records_with_a_time_wait_for_it(store: Store, database_url: str) -> None:
    job_id, _ = await store.jobs.open(STANDING, "ada")
    now = datetime.now(UTC)
    async with libraries(store)[0](database_url) as enqueue:
        await enqueue([{"n": 1}], run_at=now + timedelta(hours=1))
        await enqueue([{"n": 2}], run_at=now - timedelta(hours=1))
        await enqueue([{"n": 3, "k": 3}], key="k", run_at=now + timedelta(hours=1))
    claims = await claim(store, job_id)
    assert [row[1] for claimed in claims for row in claimed.rows] == ['{"n":2}']


async def test_applications_add_beside_each_other_and_beside_a_stream(
    store: Store, database_url: str
) -> None:
    """Their numbers mix, and no item is in two ranges."""
    job_id, _ = await store.jobs.open(STANDING, "ada")
    stream = await lease_stream(store, job_id)
    addition = Addition("events", "", [new_item({"n": n}) for n in range(50)])
    keyed = Addition("events", "", [new_item({"n": n}, f"key {n}") for n in range(50)])
    for _ in range(3):
        await asyncio.gather(
            *(store.additions.enqueue(addition) for _ in range(4)),
            store.additions.enqueue(keyed),
            ingest(store, stream, records(50)),
        )
    await assert_sound(store, job_id)
    assert await work_off(store, job_id) == 3 * (4 * 50 + 50) + 50


async def test_an_open_transaction_holds_nobody_up(store: Store, database_url: str) -> None:
    """On SQLite one transaction writes at a time."""
    job_id, _ = await store.jobs.open(STANDING, "ada")
    if store.database.driver.dialect == "sqlite":
        return
    async with _asyncpg(database_url) as enqueue:
        await enqueue([{"late": 1}])
        await store.additions.enqueue(Addition("events", "", [new_item({"early": 1})]))
        assert await work_off(store, job_id) == 1
        await store.jobs.pause(job_id, "ada")
        await store.jobs.resume(job_id, "ada")
        await store.counter_rows.fold()
    assert await work_off(store, job_id) == 1


async def test_what_is_committed_after_a_cancel_is_swept_away(
    store: Store, database_url: str
) -> None:
    job_id, _ = await store.jobs.open(STANDING, "ada")
    if store.database.driver.dialect == "sqlite":
        await store.additions.enqueue(Addition("events", "", [new_item({"n": 1})]))
        await store.jobs.cancel(job_id, "ada")
    else:
        async with _asyncpg(database_url) as enqueue:
            await enqueue([{"n": 1}])
            await store.jobs.cancel(job_id, "ada")
        assert await store.reads.cancelled_jobs_with_ranges() == [job_id]
        assert await claim(store, job_id) == []
        await store.jobs.drop_ranges(job_id)
    counters = await store.reads.counters(job_id)
    assert (counters.accepted, counters.skipped, counters.open) == (1, 1, 0)


async def test_the_owner_says_which_job_is_meant(store: Store, database_url: str) -> None:
    library = libraries(store)[0]
    for options, hint in (
        ({}, "Open one: holdfast open events (or FILE.py, if it is in a file)"),
        (
            {"owner": "ada"},
            "Open one: HOLDFAST_OWNER=ada holdfast open events (or FILE.py, if it is in a file)",
        ),
    ):
        with pytest.raises(NotThere, match="no standing job") as refused:
            async with library(database_url) as enqueue:
                await enqueue([{"n": 1}], **options)
        assert refused.value.hint == hint
    await store.jobs.open(STANDING, "local")
    of_ada = NewJob("events", "events", [], owner_id="ada", standing=True)
    job_id, _ = await store.jobs.open(of_ada, "ada")
    with pytest.raises(UnfitState, match="several owners"):
        async with library(database_url) as enqueue:
            await enqueue([{"n": 1}])
    async with library(database_url) as enqueue:
        assert (await enqueue([{"n": 1}], owner="ada")).job_id == job_id


async def test_what_cannot_be_stored_is_refused(store: Store, database_url: str) -> None:
    await store.jobs.open(STANDING, "ada")
    deep: Any = {}
    for _ in range(200):
        deep = {"deeper": deep}
    async with libraries(store)[0](database_url) as enqueue:
        for rows, options, why in (
            ({"n": 1}, {}, "must be a list of records"),
            ([1], {}, "not an object"),
            ([{"n": object()}], {}, "not JSON"),
            ([deep], {}, "nests deeper"),
            ([{"n": "x" * 11_000_000}], {}, "at most"),
            ([{"n": 1}], {"key": "id"}, "has no 'id'"),
            ([{"n": 1}], {"key": lambda row: row["n"]}, "not text"),
            ([{"n": 1}], {"run_at": datetime(2030, 1, 1)}, "not a datetime with a time zone"),  # noqa: DTZ001
            ([{"n": 1}], {"run_at": "2030-01-01T00:00:00Z"}, "not a datetime with a time zone"),
            ([{"n": 1}], {"owner": 7}, "the owner is not text"),
            ([{"n": 1}], {"schema": None}, "None cannot be the name of a schema"),
            ([{"n": 1}], {"run_at": datetime.max.replace(tzinfo=timezone(-HOUR))}, "the years"),
        ):
            with pytest.raises(UserError, match=why):
                await enqueue(rows, **options)


@pytest.mark.parametrize("key", [None, "n"])
@pytest.mark.parametrize("total", [1, 2])
async def test_text_with_a_nul_is_added_alone_and_among_others(
    store: Store, database_url: str, key: str | None, total: int
) -> None:
    job_id, _ = await store.jobs.open(STANDING, "ada")
    rows = [{"n": number, "a\0b": "c\0\\u0000"} for number in range(total)]
    for library in libraries(store):
        async with library(database_url) as enqueue:
            await enqueue(rows, key=key)
    stored = await fetch(store, "select input from items where job_id = :j order by seq", j=job_id)
    assert [orjson.loads(row[0]) for row in stored[:total]] == rows


async def test_a_connection_without_a_transaction_is_refused(
    store: Store, database_url: str
) -> None:
    await store.jobs.open(STANDING, "ada")
    with pytest.raises(UserError, match=r"needs a connection, not holdfast\.kernel\.store\.Store"):
        holdfast.enqueue(store, "events", [])
    if store.database.driver.dialect == "sqlite":
        path = database_url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            with pytest.raises(UserError, match="not in a transaction"):
                holdfast.enqueue(connection, "events", [{"n": 1}])
            connection.execute("begin immediate")
            holdfast.enqueue(connection, "events", [{"n": 1}])
            connection.execute("commit")
        return
    with (
        psycopg.connect(database_url, autocommit=True) as connection,
        pytest.raises(UserError, match="not in a transaction"),
    ):
        holdfast.enqueue(connection, "events", [{"n": 1}])
    unready = await asyncpg.connect(database_url)
    with pytest.raises(UserError, match="not in a transaction"):
        await holdfast.aenqueue(unready, "events", [{"n": 1}])
    async with unready.transaction():
        with pytest.raises(UserError, match="is async"):
            holdfast.enqueue(unready, "events", [{"n": 1}])
    await unready.close()


async def test_a_connection_that_reads_rows_its_own_way_adds_the_same(
    store: Store, database_url: str
) -> None:
    job_id, _ = await store.jobs.open(STANDING, "ada")
    peculiar = PECULIAR[store.database.driver.dialect]
    for number, connect in enumerate(peculiar):
        async with connect(database_url) as enqueue:
            row = {"key": f"ü{number}"}
            assert await enqueue([{"n": number}]) == (job_id, 1, 0)
            assert await enqueue([row], key="key") == (job_id, 1, 0)
            assert await enqueue([row], key="key") == (job_id, 0, 1)
    await assert_sound(store, job_id)
    assert await work_off(store, job_id) == 2 * len(peculiar)


async def test_sqlalchemy_that_commits_every_statement_is_refused(
    store: Store, database_url: str
) -> None:
    job_id, _ = await store.jobs.open(STANDING, "ada")
    url = database_url.replace("postgresql:", "postgresql+psycopg:")
    engine = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection, pytest.raises(UserError, match="not in a transaction"):
        holdfast.enqueue(connection, "events", [{"n": 1}])
    engine.dispose()
    if store.database.driver.dialect == "postgres":
        url = database_url.replace("postgresql:", "postgresql+asyncpg:")
        unready = create_async_engine(url, isolation_level="AUTOCOMMIT")
        async with unready.connect() as waiting:
            with pytest.raises(UserError, match="not in a transaction"):
                await holdfast.aenqueue(waiting, "events", [{"n": 1}])
        await unready.dispose()
    assert (await store.reads.counters(job_id)).accepted == 0


async def test_sqlalchemy_that_commits_every_statement_adds_what_is_one_statement(
    store: Store, database_url: str
) -> None:
    if store.database.driver.dialect == "sqlite":
        return  # each record is several statements there
    job_id, _ = await store.jobs.open(STANDING, "ada")
    url = database_url.replace("postgresql:", "postgresql+psycopg:")
    engine = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        holdfast.enqueue(connection, "events", [{"n": 1}], own_transaction=True)
    with engine.connect() as connection, pytest.raises(UserError, match="commits each statement"):
        holdfast.enqueue(connection, "events", [{"n": 1}], key="n", own_transaction=True)
    engine.dispose()
    assert (await store.reads.counters(job_id)).accepted == 1


async def test_what_is_no_connection_is_named(store: Store, database_url: str) -> None:
    if store.database.driver.dialect == "sqlite":
        with (
            closing(sqlite3.connect(database_url.removeprefix("sqlite:///"))) as connection,
            pytest.raises(UserError, match=r"not sqlite3\.Cursor"),
        ):
            holdfast.enqueue(connection.cursor(), "events", [])
        return
    engine = sqlalchemy.create_engine(database_url.replace("postgresql:", "postgresql+psycopg:"))
    with pytest.raises(UserError, match=r"not sqlalchemy\.engine\.base\.Engine"):
        holdfast.enqueue(engine, "events", [])
    with (
        psycopg.connect(database_url) as connected,
        pytest.raises(UserError, match=r"not psycopg\.Cursor"),
    ):
        holdfast.enqueue(connected.cursor(), "events", [])
    async with asyncpg.create_pool(database_url, min_size=1) as pool:
        with pytest.raises(UserError, match=r"not asyncpg\.pool\.Pool"):
            await holdfast.aenqueue(pool, "events", [])


async def test_encoding_that_cannot_send_a_record_is_named(store: Store, database_url: str) -> None:
    if store.database.driver.dialect == "sqlite":
        return
    await store.jobs.open(STANDING, "ada")
    with (
        psycopg.connect(database_url, client_encoding="latin1") as connection,
        pytest.raises(UserError, match="encoding"),
    ):
        holdfast.enqueue(connection, "events", [{"n": "漢字"}])


async def test_a_cut_connection_leaves_nothing(store: Store, database_url: str) -> None:
    job_id, _ = await store.jobs.open(STANDING, "ada")
    if store.database.driver.dialect == "sqlite":
        connection = sqlite3.connect(database_url.removeprefix("sqlite:///"))
        holdfast.enqueue(connection, "events", [{"n": 1}])
        connection.close()
    else:
        cut = await asyncpg.connect(database_url)
        await cut.execute("begin")
        await holdfast.aenqueue(cut, "events", [{"n": 1}])
        cut.terminate()
    assert (await store.reads.counters(job_id)).accepted == 0
    assert await claim(store, job_id) == []


async def test_many_small_ranges_are_claimed_and_settled_together(store: Store) -> None:
    job_id, _ = await store.jobs.open(STANDING, "ada")
    for number in range(40):
        await store.additions.enqueue(Addition("events", "", [new_item({"n": number})]))
    claims = await claim(store, job_id)
    assert len(seqs_of(*claims)) == 40
    for claimed in claims:
        assert await settle(store, claimed) == []
    await assert_sound(store, job_id)


async def test_records_are_counted_alike_everywhere(store: Store) -> None:
    job_id, _ = await store.jobs.open(STANDING, "ada")
    job, console = await store.reads.job(job_id), open_console(store)

    async def open_items() -> list[int]:
        (counted,) = await console.jobs.counted([job])
        shown = (await console.jobs.of_items([job_id]))[job_id]
        return [
            counted.counters.open,
            shown.accepted - shown.finished,
            await console.items.pending_count(None, None, 0),
            (await console.quotas.used(job.owner_id)).items,
            (await store.reads.counters(job_id)).open,
        ]

    for number in range(2):
        await store.additions.enqueue(Addition("events", "", [new_item({"n": number})]))
    assert await open_items() == [2] * 5
    (claimed, *_) = await claim(store, job_id, 1)
    await settle(store, claimed)
    assert await open_items() == [1] * 5
    await store.counter_rows.fold()
    assert await open_items() == [1] * 5
