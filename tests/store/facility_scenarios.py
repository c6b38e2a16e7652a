"""The same for what pipelines may use: the cache and rulings."""

from __future__ import annotations

from holdfast.features.console import open_console
from holdfast.features.rulings.rules import NewRuling
from holdfast.kernel import Store
from holdfast.rulings import RulingKind
from tests.store.checks import execute, fetch, filled_job
from tests.store.scenarios import SCENARIOS, Scenario
from tests.store.upkeep_scenarios import simple_scenario

CACHED = ("cache", "key")


async def _put(store: Store, name: str) -> None:
    await store.cache.put("demo", {name: ({"label": name}, 60.0)})


async def _put_expired(store: Store, name: str) -> None:
    await store.cache.put("demo", {name: ({"label": name}, 60.0)})
    await execute(store, "update cache set expires_at = '2020-01-01T00:00:00.000Z'")


async def _drop(store: Store, name: str) -> None:
    await store.cache.drop("demo", [name])


async def _prune(store: Store, name: str) -> None:
    await store.cache.prune_cache()


simple_scenario("put_cache", _put, *CACHED, 1)
simple_scenario("drop_cache", _drop, *CACHED, 0, _put)
simple_scenario("prune_cache", _prune, *CACHED, 0, _put_expired)


async def _filled(store: Store) -> int:
    return await filled_job(store, 2)


async def _rule(store: Store, job_id: int) -> None:
    job = await store.reads.job(job_id)
    new = NewRuling(RulingKind.EDIT, {"price": 12}, "seen in the shop", "ada", 0)
    await open_console(store).rulings.rule(job, 1, new)


async def _is_ruled(store: Store, job_id: int) -> None:
    [ruling] = await open_console(store).rulings.history(job_id, 1)
    assert (ruling.version, ruling.changes) == (1, {"price": 12})
    audit = "select 1 from audit where job_id = :job_id and action = 'ruling.edit'"
    assert len(await fetch(store, audit, job_id=job_id)) == 1


SCENARIOS.append(Scenario("rule", _filled, _rule, _is_ruled))
