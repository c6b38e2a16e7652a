"""The cache: entries by scope and key, until they expire."""

from __future__ import annotations

import pytest

from holdfast.kernel import Store
from tests.store.checks import execute, fetch


async def _expire(store: Store, *keys: str) -> None:
    for key in keys:
        change = "update cache set expires_at = '2020-01-01T00:00:00.000Z' where key = :key"
        await execute(store, change, key=key)


async def test_entries_are_read_in_one_scope_until_they_expire(store: Store) -> None:
    cache = store.cache
    await cache.put("a", {"Q1": ({"label": "one"}, 60), "Q2": (None, 60), "Q3": ([3], 60)})
    await cache.put("b", {"Q1": ("other", 60)})
    await _expire(store, "Q3")
    assert await cache.read("a", ["Q1", "Q2", "Q3", "Q4"]) == {"Q1": {"label": "one"}, "Q2": None}
    assert await cache.read("b", ["Q1", "Q2"]) == {"Q1": "other"}
    assert await cache.read("a", []) == {}


async def test_newer_entry_replaces_the_older_and_its_expiry(store: Store) -> None:
    await store.cache.put("a", {"Q1": (1, 60)})
    await _expire(store, "Q1")
    await store.cache.put("a", {"Q1": (2, 60)})
    assert await store.cache.read("a", ["Q1"]) == {"Q1": 2}


async def test_entry_without_time_is_not_kept(store: Store) -> None:
    await store.cache.put("a", {"Q1": (None, 0), "Q2": (2, 60)})
    assert await fetch(store, "select key from cache") == [("Q2",)]


@pytest.mark.parametrize(
    "key", ["", "x" * 100_000, "nul\0", "line\nbreak", "\ud800", "Žuti mačak 🐈", "a:b|c"]
)
async def test_any_text_is_a_key(store: Store, key: str) -> None:
    await store.cache.put("a", {key: ("value", 60), "another": (1, 60)})
    assert await store.cache.read("a", [key]) == {key: "value"}
    await store.cache.drop("a", [key])
    assert await store.cache.read("a", [key, "another"]) == {"another": 1}


async def test_pruning_removes_what_expired_and_nothing_else(store: Store) -> None:
    await store.cache.put("a", {f"Q{n}": (n, 60) for n in range(1200)})
    await _expire(store, *(f"Q{n}" for n in range(1100)))
    assert [await store.cache.prune_cache() for _ in range(3)] == [1000, 100, 0]
    assert len(await store.cache.read("a", [f"Q{n}" for n in range(1200)])) == 100
