"""Races of the scanners of an adapter, with each other and with its removal."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.errors import NotThere
from holdfast.features.console import open_console
from holdfast.features.deletion.rules import DeletionRows
from holdfast.features.ingestion.adapters import (
    Adapter,
    AdapterKind,
    Adapters,
    KnownFile,
    NewAdapter,
)
from holdfast.kernel import NewJob, NewStream, Store
from tests.store.checks import fetch
from tests.store.interleave import Action, stopped, until_blocked


def adapters_of(store: Store) -> Adapters:
    return open_console(store).adapters


async def watched(store: Store) -> Adapter:
    new = NewAdapter("in", AdapterKind.FOLDER, "/incoming", "demo", "ada")
    await adapters_of(store).set_adapter(new, "ada")
    return await adapters_of(store).named("in")


async def see(store: Store, adapter: Adapter) -> KnownFile:
    return await adapters_of(store).see_file(adapter, "a.csv 7", "a.csv", 7)


async def start(store: Store, adapter: Adapter, token: str) -> int | None:
    job = NewJob("demo", "a.csv", [NewStream("upload-{job}", "v1")], owner_id="ada")
    return await adapters_of(store).start_job(await see(store, adapter), job, token)


async def test_scanner_that_is_replaced_while_it_creates_the_job_creates_no_second_one(
    store: Store, database_url: str
) -> None:
    """It stood still in the middle of its transaction until it was taken for lost."""
    adapter = await watched(store)
    assert await adapters_of(store).lease_adapter(adapter, "first")

    async def next_scanner() -> Any:
        await store.workers.stop_worker("first")
        assert await adapters_of(store).lease_adapter(adapter, "second")
        return await start(store, adapter, "second")

    async with stopped(
        database_url, "start_job", "note_adapter_file", lambda other: start(other, adapter, "first")
    ) as first:
        second = asyncio.create_task(next_scanner())
        await until_blocked(store, second)
        jobs = [await first.go_on(), await second]
    assert len([job for job in jobs if job is not None]) == 1
    assert len(await fetch(store, "select id from jobs")) == 1


async def remove(store: Store) -> None:
    await adapters_of(store).remove_adapter("in", "ada")


async def delete_owner(store: Store) -> None:
    await DeletionRows(store.database).mark_user("ada", "root")


REMOVALS = [
    ("remove_adapter", "remove_adapter", remove),
    ("mark_user", "delete_adapters_of_user", delete_owner),
]


@pytest.mark.parametrize(("verb", "query", "remove"), REMOVALS, ids=["adapter", "owner"])
async def test_adapter_is_removed_while_its_scanner_sees_a_file(
    store: Store, database_url: str, verb: str, query: str, remove: Action
) -> None:
    await open_console(store).people.add_user("ada", "operator", None, "root")
    adapter = await watched(store)
    async with stopped(database_url, verb, query, remove) as removal:
        seeing = asyncio.create_task(see(store, adapter))
        await until_blocked(store, seeing)
        await removal.go_on()
        with pytest.raises(NotThere, match="there is no adapter 'in'"):
            await seeing
    assert await adapters_of(store).all() == []
