"""Holdfast in the database of an application that has tables of the same names."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import create_async_engine

import holdfast
from holdfast.errors import UserError
from holdfast.kernel import NewJob, open_store
from holdfast.kernel.database.extension_folders import all_sql
from holdfast.kernel.database.migrate import downgrade, installed_branches, status, upgrade
from holdfast.kernel.database.queries import load_queries
from holdfast_client.names import with_whole_functions
from tests.command import HoldfastCommand
from tests.postgres import SUPERUSER
from tests.store.checks import assert_sound, work_off

STANDING = NewJob("events", "events", [], standing=True)
#: What a web application with Alembic may have, and a function that must not be called for ours.
TABLES = (
    "create table users (id integer, email text)",
    "create table jobs (id integer primary key, title text)",
    "create table items (id integer, job_id integer references jobs (id))",
    "create table alembic_version (version_num text)",
    "create table schema_versions (branch text, version integer)",
    "create index jobs_by_state on jobs (title)",
    "insert into users values (1, 'ada@example.com')",
    "insert into alembic_version values ('8f3a2b')",
    "insert into schema_versions values ('core', 9000)",
)
IMPOSTOR = """
create function enqueue_records_1(text, text, text, json, bigint, bigint, timestamptz,
    out fitting_jobs bigint, out standing_job bigint) language plpgsql as $$
begin raise exception 'this is the application''s'; end $$
"""
ROWS = {
    "users": [(1, "ada@example.com")],
    "jobs": [(1, "paint the fence")],
    "items": [(7, 1)],
    "alembic_version": [("8f3a2b",)],
    "schema_versions": [("core", 9000)],
}


def run(url: str, *statements: str) -> list[tuple[Any, ...]]:
    """As the application; rows of the last statement."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
            return [connection.execute(each).fetchall() for each in statements][-1]
    with psycopg.connect(url, autocommit=True) as connection:
        for each in statements:
            cursor = connection.execute(each)  # type: ignore[call-overload]
        return list(cursor.fetchall()) if cursor.description else []


def rows_of_application(url: str) -> dict[str, list[tuple[Any, ...]]]:
    return {table: run(url, f"select * from {table}") for table in ROWS}


@pytest.fixture
def shared_url(empty_database_url: str) -> str:
    """The database of the application, in which Holdfast was installed afterwards."""
    run(empty_database_url, *TABLES)
    if not empty_database_url.startswith("sqlite"):
        run(empty_database_url, IMPOSTOR)
    upgrade(empty_database_url)
    return empty_database_url


async def test_application_keeps_its_tables_and_adds_records_with_its_rows(shared_url: str) -> None:
    store = await open_store(shared_url)
    job_id, _ = await store.jobs.open(STANDING, "ada")
    if shared_url.startswith("sqlite"):
        with closing(sqlite3.connect(shared_url.removeprefix("sqlite:///"))) as connection:
            _add_fence(connection)
            connection.rollback()
            _add_fence(connection)
            connection.commit()
    else:
        with psycopg.connect(shared_url) as connection:
            _add_fence(connection)
            connection.rollback()
            _add_fence(connection)
    await assert_sound(store, job_id)
    assert (await store.reads.counters(job_id)).accepted == 3
    assert await work_off(store, job_id) == 3
    await store.close()
    assert rows_of_application(shared_url) == ROWS


def _add_fence(connection: Any) -> None:
    connection.execute("insert into jobs (id, title) values (1, 'paint the fence')")
    holdfast.enqueue(connection, "events", [{"n": 1}, {"n": 2}])
    holdfast.enqueue(connection, "events", [{"n": 3}, {"n": 3}], key="n")
    connection.execute("insert into items values (7, 1)")


async def test_sql_of_a_pipeline_means_the_tables_of_the_application(shared_url: str) -> None:
    """What `save` gives as text is run as it is."""
    store = await open_store(shared_url)

    async def save(tx: Any) -> None:
        await tx.execute("insert into jobs values (:id, :title)", {"id": 2, "title": "mow"})
        await tx.execute_many("update jobs set title = :t where id = :id", [{"t": "rest", "id": 2}])
        assert [tuple(row) for row in await tx.fetch("select * from jobs")] == [(2, "rest")]

    await store.database.write("test", save)
    await store.close()
    assert run(shared_url, "select * from jobs") == [(2, "rest")]


def test_nothing_of_ours_is_left_after_the_last_downgrade(shared_url: str) -> None:
    before = _names(shared_url)
    for branch in installed_branches()[::-1]:
        downgrade(shared_url, branch.name, "base")
    left = _names(shared_url)
    ours = {name for name in left if "holdfast" in name}
    assert {name.split(".")[-1] for name in ours} == (
        {"holdfast_schema_versions"}
        if shared_url.startswith("sqlite")
        else {"schema_versions", "schema_versions_pkey"}
    )
    assert {name for name in before if "holdfast" not in name} == left - ours
    assert status(shared_url).is_empty
    upgrade(shared_url)
    assert _names(shared_url) == before


def _names(url: str) -> set[str]:
    """Of everything in the database, with its schema."""
    if url.startswith("sqlite"):
        rows = run(url, "select name from sqlite_schema where name not like 'sqlite%'")
    else:
        rows = run(
            url,
            "select nspname || '.' || relname from pg_class c join pg_namespace n"
            " on n.oid = c.relnamespace where nspname not like 'pg%'"
            " and nspname <> 'information_schema'",
        )
    return {row[0] for row in rows}


@pytest.mark.parametrize("path", ["''", "app", "public", "app, holdfast, public"])
async def test_search_path_of_the_application_does_not_matter_and_stays(
    empty_postgres_url: str, path: str
) -> None:
    url = empty_postgres_url
    run(url, *TABLES, IMPOSTOR, "create schema app", "create table app.jobs (title text)")
    database = url.rsplit("/", 1)[1]
    run(url, f"alter database {database} set search_path = {path}")
    await asyncio.to_thread(upgrade, url)
    store = await open_store(url)
    job_id, _ = await store.jobs.open(STANDING, "ada")
    for number, connect in enumerate(CONNECTIONS):
        async with connect(url) as (enqueue, fetch):
            before = await fetch("show search_path")
            assert (await enqueue([{"n": number}])).accepted == 1
            assert (await enqueue([{"n": number}], key="n")).accepted == 1
            assert await fetch("show search_path") == before
    assert (await store.reads.counters(job_id)).accepted == 2 * len(CONNECTIONS)
    assert await work_off(store, job_id) == 2 * len(CONNECTIONS)
    await assert_sound(store, job_id)
    await store.close()


Enqueue = Callable[..., Awaitable[holdfast.Enqueued]]
Fetch = Callable[[str], Awaitable[Any]]


@asynccontextmanager
async def _psycopg(url: str) -> AsyncIterator[tuple[Enqueue, Fetch]]:
    async with await psycopg.AsyncConnection.connect(url) as connection:

        async def fetch(sql: str) -> Any:
            return await (await connection.execute(sql)).fetchall()  # type: ignore[call-overload]

        yield _adding_to(connection), fetch


@asynccontextmanager
async def _asyncpg(url: str) -> AsyncIterator[tuple[Enqueue, Fetch]]:
    # As behind a pooler: a statement that was prepared in a session is not there in the next.
    connection = await asyncpg.connect(url, statement_cache_size=0)
    try:
        async with connection.transaction():
            yield _adding_to(connection), connection.fetchval
    finally:
        await connection.close()


@asynccontextmanager
async def _sqlalchemy(url: str) -> AsyncIterator[tuple[Enqueue, Fetch]]:
    engine = create_async_engine(url.replace("postgresql:", "postgresql+asyncpg:"))
    try:
        async with engine.begin() as connection:

            async def fetch(sql: str) -> Any:
                return (await connection.execute(sqlalchemy.text(sql))).fetchall()

            yield _adding_to(connection), fetch
    finally:
        await engine.dispose()


def _adding_to(connection: Any) -> Enqueue:
    async def enqueue(rows: Any, **options: Any) -> holdfast.Enqueued:
        return await holdfast.aenqueue(connection, "events", rows, **options)

    return enqueue


CONNECTIONS = (_psycopg, _asyncpg, _sqlalchemy)


async def test_every_query_says_where_its_tables_are(postgres_url: str) -> None:
    connection = await asyncpg.connect(postgres_url, server_settings={"search_path": ""})
    for query in load_queries("postgres", all_sql()).values():
        await connection.prepare(query.sql)
    await connection.close()


async def test_every_query_says_which_functions_are_those_of_the_server(postgres_url: str) -> None:
    functions = {row[0] for row in run(postgres_url, "select proname from pg_proc")}
    called = {
        f"{name}: {call}"
        for name, query in load_queries("postgres", all_sql()).items()
        for call in re.findall(r"(?<![\w.])([a-z_][a-z0-9_]*)\(", query.sql)
    }
    left = {call for call in called if call.split(": ")[1] in functions}
    syntax = (": unnest", ": extract")  # of several arrays, and of a part of a time
    assert {call for call in left if not call.endswith(syntax)} == set()


@pytest.mark.parametrize(
    ("written", "whole"),
    [
        ("unnest(cast(:a as text[]))", "pg_catalog.unnest(cast(:a as text[]))"),
        (
            "unnest(string_to_array(a, ','))",
            "pg_catalog.unnest(pg_catalog.string_to_array(a, ','))",
        ),
        ("unnest($1::text[], $2::int[])", "unnest($1::text[], $2::int[])"),
        ("public.sum(a) + sum(b)", "public.sum(a) + pg_catalog.sum(b)"),
    ],
)
def test_functions_of_the_server_get_their_whole_names(written: str, whole: str) -> None:
    assert with_whole_functions(written) == whole


HIJACKERS = [
    f"create function public.{heading} language plpgsql as"
    " $$ begin raise exception 'hijacked'; end $$"
    for heading in (
        "unnest(text[]) returns setof text",
        "unnest(bigint[]) returns setof bigint",
        "unnest(integer[]) returns setof integer",
        "unnest(double precision[]) returns setof double precision",
        "hashtextextended(text, integer) returns bigint",
        "generate_series(bigint, bigint) returns setof bigint",
        "left(text, bigint) returns text",
    )
]


async def test_functions_that_others_create_in_public_are_never_called(
    empty_postgres_url: str,
) -> None:
    run(empty_postgres_url, *HIJACKERS)
    await asyncio.to_thread(upgrade, empty_postgres_url)
    store = await open_store(empty_postgres_url)
    job_id, _ = await store.jobs.open(STANDING, "ada")
    for connect in CONNECTIONS:
        async with connect(empty_postgres_url) as (enqueue, _):
            assert (await enqueue([{"n": 1}, {"n": 2}], key="n")).accepted in (0, 2)
    assert await work_off(store, job_id) == 2
    await assert_sound(store, job_id)
    await store.close()


def test_every_query_says_where_its_tables_are_on_sqlite(sqlite_url: str) -> None:
    tables = {row[0] for row in run(sqlite_url, "select name from sqlite_schema")}
    assert {name for name in tables if not name.startswith(("holdfast_", "sqlite_"))} == set()
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as connection:
        for query in load_queries("sqlite", all_sql()).values():
            values: Any = dict.fromkeys((*query.parameters, "batch"), "[]")
            values = ["[]"] * query.sql.count("?") or values
            connection.execute(f"explain {query.sql}", values)


async def test_two_schemas_of_a_database_know_nothing_of_each_other(
    empty_database_url: str,
) -> None:
    names = ("holdfast", "other")
    for schema in names:
        await asyncio.to_thread(upgrade, empty_database_url, schema=schema)
    stores = {schema: await open_store(empty_database_url, schema=schema) for schema in names}
    for store in stores.values():
        await store.jobs.open(STANDING, "ada")
    _enqueue_into(empty_database_url, "other")
    counters = {name: (await store.reads.counters(1)).accepted for name, store in stores.items()}
    assert counters == {"holdfast": 0, "other": 2}
    assert await work_off(stores["other"], 1) == 2
    await _close(stores.values())
    for branch in installed_branches()[::-1]:
        await asyncio.to_thread(downgrade, empty_database_url, branch.name, "base", schema="other")
    assert await asyncio.to_thread(lambda: status(empty_database_url).up_to_date)


async def _close(stores: Any) -> None:
    for store in stores:
        await store.close()


def _enqueue_into(url: str, schema: str) -> None:
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
            holdfast.enqueue(connection, "events", [{"n": 1}, {"n": 2}], schema=schema)
    else:
        with psycopg.connect(url) as other:
            holdfast.enqueue(other, "events", [{"n": 1}, {"n": 2}], schema=schema)


@pytest.mark.parametrize(
    "schema",
    [
        "public", "pg_own", "Upper", "a;b", "", "x" * 31, "1st", "user", "order",
        "information_schema", "sqlite_own",
    ],
)  # fmt: skip
def test_schema_that_cannot_be_is_refused(sqlite_url: str, schema: str) -> None:
    with (
        closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as connection,
        pytest.raises(UserError, match="cannot be the name of a schema"),
    ):
        holdfast.enqueue(connection, "events", [{"n": 1}], schema=schema)


def test_schema_that_is_there_needs_no_right_to_create_one(empty_postgres_url: str) -> None:
    url, database = empty_postgres_url, empty_postgres_url.rsplit("/", 1)[1]
    run(
        url,
        "create role keeper login",
        "create schema holdfast authorization keeper",
        f"revoke create on database {database} from public",
    )
    keepers = url.replace(f"{SUPERUSER}@", "keeper@")
    try:
        upgrade(keepers)
        assert status(keepers).up_to_date
    finally:
        run(url, "drop owned by keeper", "drop role keeper")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ((), "may not create the schema holdfast"),
        (("create schema holdfast",), "may not create tables in the schema holdfast"),
        (
            ("create schema holdfast", "grant usage on schema holdfast to visitor"),
            "may not create tables in the schema holdfast",
        ),
    ],
)
def test_role_without_rights_is_told_what_to_ask_for(
    empty_postgres_url: str, given: tuple[str, ...], reason: str
) -> None:
    url = empty_postgres_url
    run(url, "create role visitor login", *given)
    try:
        with pytest.raises(UserError, match=reason):
            upgrade(url.replace(f"{SUPERUSER}@", "visitor@"))
    finally:
        run(url, "drop owned by visitor", "drop role visitor")


@pytest.mark.parametrize(
    "command", [("jobs",), ("doctor",), ("migrate", "status"), ("dead", "list")]
)
def test_command_of_a_role_without_rights_says_so(
    postgres_url: str, tmp_path: Path, command: tuple[str, ...]
) -> None:
    run(postgres_url, "create role visitor login")
    try:
        visitor = HoldfastCommand(postgres_url.replace(f"{SUPERUSER}@", "visitor@"), tmp_path)
        done = visitor.run(*command)
        said = done.stdout + done.stderr
        assert "permission denied for schema holdfast" in said, said
        assert "Traceback" not in said
    finally:
        run(postgres_url, "drop role visitor")


def test_database_that_cannot_hold_every_text_is_refused(postgres_url: str) -> None:
    latin, name = postgres_url.rsplit("/", 1)[0], f"{postgres_url.rsplit('/', 1)[1]}_latin"
    run(postgres_url, f"create database {name} encoding 'LATIN1' locale 'C' template template0")
    try:
        with pytest.raises(UserError, match="has the encoding LATIN1"):
            upgrade(f"{latin}/{name}")
    finally:
        run(postgres_url, f"drop database {name}")


def test_database_that_takes_no_changes_says_so(postgres_url: str, tmp_path: Path) -> None:
    run(
        postgres_url,
        f"alter database {postgres_url.rsplit('/', 1)[1]} set default_transaction_read_only = on",
    )
    done = HoldfastCommand(postgres_url, tmp_path).run("kill-switch", "on")
    assert done.returncode == 1
    assert "the database takes no changes" in done.stderr
    assert "Traceback" not in done.stderr


def test_function_of_somebody_else_never_stands_in_for_the_lock(empty_postgres_url: str) -> None:
    """Its argument fits better than that of PostgreSQL's own, and `public` is in the path."""
    run(
        empty_postgres_url,
        "create function public.pg_advisory_xact_lock(integer) returns void language plpgsql"
        " as $$ begin raise exception 'called as %', current_user; end $$",
    )
    upgrade(empty_postgres_url)
    assert status(empty_postgres_url).up_to_date


def test_migrations_at_once_pass_whatever_isolation_the_database_has(
    empty_postgres_url: str,
) -> None:
    database = empty_postgres_url.rsplit("/", 1)[1]
    run(
        empty_postgres_url,
        f"alter database {database} set default_transaction_isolation = 'serializable'",
    )
    with ThreadPoolExecutor(3) as threads:
        list(threads.map(upgrade, [empty_postgres_url] * 3))
    assert status(empty_postgres_url).up_to_date


def test_numbers_of_records_with_keys_are_our_own(empty_postgres_url: str) -> None:
    upgrade(empty_postgres_url)
    run(
        empty_postgres_url,
        "create function public.nextval(text) returns bigint"
        " language sql as 'select 424242::bigint'",
        "create function public.generate_series(integer, bigint) returns setof bigint"
        " language sql as 'select 1::bigint where false'",
    )
    asyncio.run(_open_standing(empty_postgres_url))
    with psycopg.connect(empty_postgres_url) as connection:
        holdfast.enqueue(connection, "events", [{"n": 1}, {"n": 2}], key="n")
    rows = run(empty_postgres_url, "select seq from holdfast.items order by seq")
    assert [row[0] for row in rows] == [1, 2]


async def _open_standing(url: str) -> None:
    store = await open_store(url)
    try:
        await store.jobs.create(STANDING, "tester")
    finally:
        await store.close()
