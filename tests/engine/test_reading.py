"""`ctx.read`: a pipeline reads its own tables, and writes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
import structlog

from holdfast import Context, Page, Pipeline, Record, pipeline
from holdfast.errors import GateWait, PipelineError
from holdfast.kernel import Store, open_store
from holdfast.kernel.jobs.control import Control, JobRequest
from holdfast.model import ItemStatus, Json
from tests.engine.one_worker import facilities_of, work
from tests.store.checks import fetch, filled_job, items_of

_NAMES = "select n, name from own_names where n = :n"


async def _make_names(store: Store) -> None:
    async with store.database.driver.transaction("test") as tx:
        await tx.execute("create table own_names (n integer primary key, name text)")
        rows = [{"n": n, "name": f"name {n}"} for n in range(3)]
        await tx.execute_many("insert into own_names (n, name) values (:n, :name)", rows)


async def _results(store: Store, job_id: int) -> list[Any]:
    return [orjson.loads(item.result or "null") for item in await items_of(store, job_id)]


async def test_process_reads_its_own_tables_by_name(store: Store) -> None:
    await _make_names(store)

    @pipeline(name="demo", columns=["name"])
    async def demo(row: Json, ctx: Context) -> Json:
        [found] = await ctx.read(_NAMES, {"n": row["n"]})
        return {"name": found["name"]}

    job_id = await filled_job(store, 3)
    await work(store, demo)
    assert await _results(store, job_id) == [{"name": f"name {n}"} for n in range(3)]


async def test_plain_function_reads_without_await(store: Store) -> None:
    await _make_names(store)

    @pipeline(name="demo")
    def demo(row: Json, ctx: Context) -> Json:
        return {"names": [found["name"] for found in ctx.read(_NAMES, {"n": row["n"]})]}

    job_id = await filled_job(store, 2)
    await work(store, demo)
    assert await _results(store, job_id) == [{"names": ["name 0"]}, {"names": ["name 1"]}]


async def test_discover_reads_its_own_tables(store: Store) -> None:
    class Demo(Pipeline):
        async def discover(self, source: str, cursor: Any, ctx: Context) -> AsyncIterator[Page]:
            rows = await ctx.read("select n, name from own_names order by n")
            yield Page([Record({"name": row["name"]}) for row in rows], end=True)

        async def process(self, row: Json, ctx: Context) -> Json:
            return row

    await _make_names(store)
    demo = Demo()
    control = Control(store, "tester", structlog.get_logger())
    job_id = await control.start(JobRequest(demo))
    await work(store, demo)
    assert await _results(store, job_id) == [{"name": f"name {n}"} for n in range(3)]


@pytest.mark.parametrize(
    "statement",
    [
        "delete from own_names",
        "insert into own_names (n, name) values (7, 'seven') returning n",
        "create table another (n integer)",
    ],
)
async def test_read_cannot_write(store: Store, statement: str) -> None:
    await _make_names(store)

    @pipeline(name="demo", max_attempts=1)
    async def demo(row: Json, ctx: Context) -> Json:
        return {"rows": len(await ctx.read(statement))}

    job_id = await filled_job(store, 1)
    await work(store, demo)
    [item] = await items_of(store, job_id)
    assert item.status is ItemStatus.ERROR
    assert "read" in (item.error_message or "").lower()
    assert await fetch(store, "select count(*) from own_names") == [(3,)]


async def test_extension_names_its_own_queries_and_no_others(store: Store) -> None:
    @pipeline(name="meetings")
    async def demo(row: Json, ctx: Context) -> None:
        return None

    demo.extension = "meetings"
    facilities = facilities_of(store, demo)
    queries = store.database.driver.queries
    own = next(
        name for name in queries if name.startswith("meetings_") and not queries[name].parameters
    )
    assert isinstance(await facilities.read(own), list)
    for name in ("flags", "meetings_that_do_not_exist", "set_flag"):
        with pytest.raises(PipelineError, match="has no query"):
            await facilities.read(name)


async def test_item_gives_up_its_place_while_the_database_is_gone(postgres_url: str) -> None:
    @pipeline(name="demo")
    async def demo(row: Json, ctx: Context) -> None:
        return None

    store = await open_store(postgres_url)
    await store.close()
    with pytest.raises(GateWait, match="database"):
        await facilities_of(store, demo).read("select 1 as one")
