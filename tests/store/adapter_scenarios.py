"""The same for adapters, for schedules that a pipeline brings, and for changes of extensions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

from holdfast.features.console import open_console
from holdfast.features.ingestion.adapters import (
    Adapter,
    AdapterKind,
    Adapters,
    FileState,
    KnownFile,
    NewAdapter,
)
from holdfast.features.schedules.table import Schedules
from holdfast.kernel import NewJob, NewStream, Store
from holdfast.kernel.database.driver import Transaction
from holdfast.orders import Act, Planned
from holdfast.pipeline import Schedule
from tests.store.checks import fetch
from tests.store.scenarios import FUTURE, SCENARIOS, Scenario
from tests.store.upkeep_scenarios import simple_scenario

TOKEN = "the scanner's token"


def _adapters(store: Store) -> Adapters:
    return open_console(store).adapters


async def _set(store: Store, name: str) -> None:
    new = NewAdapter(name, AdapterKind.FOLDER, "/incoming", "demo", "ada")
    await _adapters(store).set_adapter(new, "ada")


async def _lease(store: Store, name: str) -> None:
    await _adapters(store).lease_adapter(await _adapters(store).named(name), TOKEN)


async def _remove(store: Store, name: str) -> None:
    if [adapter for adapter in await _adapters(store).all() if adapter.name == name]:
        await _adapters(store).remove_adapter(name, "ada")


async def _set_once(store: Store, name: str) -> None:
    await Schedules(store.database).set_once(Schedule(name, "0 6 * * *"), "demo", FUTURE)


simple_scenario("set_adapter", _set, "adapters", "name", 1)
simple_scenario("remove_adapter", _remove, "adapters", "name", 0, _set)
simple_scenario("set_once", _set_once, "schedules", "name", 1)


def _on_leased(
    verb: str,
    act: Callable[[Store, Adapter], Awaitable[Any]],
    check: Callable[[Store, Adapter], Awaitable[None]],
    lease: bool = True,
) -> None:
    """A verb of the scanner of an adapter."""

    async def prepare(store: Store) -> Adapter:
        name = f"{verb} {uuid4()}"
        await _set(store, name)
        if lease:
            await _lease(store, name)
        return await _adapters(store).named(name)

    SCENARIOS.append(Scenario(verb, prepare, act, check))


async def _scans(store: Store, adapter: Adapter) -> None:
    assert (await _adapters(store).named(adapter.name)).scanning


async def _scans_no_more(store: Store, adapter: Adapter) -> None:
    assert not (await _adapters(store).named(adapter.name)).scanning


async def _see(store: Store, adapter: Adapter) -> KnownFile:
    return await _adapters(store).see_file(adapter, "a.csv 7", "a.csv", 7)


async def _is_seen(store: Store, adapter: Adapter) -> None:
    assert [file.name for file in await _adapters(store).files(adapter, 9)] == ["a.csv"]


async def _note(store: Store, adapter: Adapter) -> None:
    file = await _see(store, adapter)
    file.sha256 = "0" * 64
    assert await _adapters(store).note_file(file, TOKEN)


async def _is_noted(store: Store, adapter: Adapter) -> None:
    query = "select sha256 from adapter_files where adapter_id = :id"
    assert [row[0] for row in await fetch(store, query, id=adapter.id)] == ["0" * 64]


async def _forget(store: Store, adapter: Adapter) -> None:
    await _adapters(store).forget_file(await _see(store, adapter), TOKEN)


async def _is_forgotten(store: Store, adapter: Adapter) -> None:
    query = "select identity from adapter_files where adapter_id = :id"
    identities = [row[0] for row in await fetch(store, query, id=adapter.id)]
    assert identities and "a.csv 7" not in identities


async def _start(store: Store, adapter: Adapter) -> None:
    file = await _see(store, adapter)
    if file.state is not FileState.TAKEN:
        sources = [f"file {adapter.id}", await _read_before(store, adapter)]
        streams = [NewStream(source, "v1") for source in sources]
        job = NewJob("demo", "a.csv", streams, owner_id="ada")
        await _adapters(store).start_job(file, job, TOKEN)


async def _read_before(store: Store, adapter: Adapter) -> str:
    """A source that a job read before."""
    source = f"before {adapter.id}"
    if not await fetch(store, "select 1 from streams where source = :source", source=source):
        before = NewJob("demo", "before", [NewStream(source, "v1")], owner_id="ada")
        await store.jobs.cancel(await store.jobs.create(before, "ada"), "ada")
    return source


async def _has_one_job(store: Store, adapter: Adapter) -> None:
    [file] = await _adapters(store).files(adapter, 9)
    source = f"file {adapter.id}"
    jobs = await fetch(store, "select job_id from streams where source = :source", source=source)
    assert [row[0] for row in jobs] == [file.job_id]


_on_leased("lease_adapter", lambda store, adapter: _lease(store, adapter.name), _scans, lease=False)
_on_leased(
    "release_adapter",
    lambda store, it: _adapters(store).release_adapter(it, TOKEN, None),
    _scans_no_more,
)
_on_leased("see_file", _see, _is_seen)
_on_leased("note_file", _note, _is_noted)
_on_leased("forget_file", _forget, _is_forgotten)
_on_leased("start_job", _start, _has_one_job)


async def _new_name(_: Store) -> str:
    return f"change {uuid4()}"


async def _change(store: Store, name: str) -> None:
    async def change(tx: Transaction) -> Planned:
        return Planned(acts=[Act("demo.changed", name, {})])

    if not await fetch(store, "select 1 from audit where subject = :name", name=name):
        await store.plans.change("ada", change)


async def _is_changed(store: Store, name: str) -> None:
    assert len(await fetch(store, "select 1 from audit where subject = :name", name=name)) == 1


SCENARIOS.append(Scenario("change", _new_name, _change, _is_changed))
