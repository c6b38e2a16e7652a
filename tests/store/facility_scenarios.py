"""The same for what pipelines may use: the cache."""

from __future__ import annotations

from holdfast.store import Store
from tests.store.upkeep_scenarios import simple_scenario

CACHED = ("cache", "key")


async def _put(store: Store, name: str) -> None:
    await store.cache.put("demo", {name: ({"label": name}, 60.0)})


async def _put_expired(store: Store, name: str) -> None:
    await store.cache.put("demo", {name: ({"label": name}, 60.0)})
    async with store.database.driver.transaction("test") as tx:
        await tx.execute("update cache set expires_at = '2020-01-01T00:00:00.000Z'")


async def _drop(store: Store, name: str) -> None:
    await store.cache.drop("demo", [name])


async def _prune(store: Store, name: str) -> None:
    await store.cache.prune_cache()


simple_scenario("put_cache", _put, *CACHED, 1)
simple_scenario("drop_cache", _drop, *CACHED, 0, _put)
simple_scenario("prune_cache", _prune, *CACHED, 0, _put_expired)
