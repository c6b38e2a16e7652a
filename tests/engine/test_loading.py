"""Loaders: concurrent look-ups become one request; errors reach all that wait."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import pytest

from holdfast import Context, Loader, NotFound, Pipeline, Retry
from holdfast.errors import ItemError, PipelineError
from holdfast.kernel import Store
from holdfast.model import ItemStatus, Json
from tests.engine.one_worker import facilities_of, work
from tests.store.checks import filled_job, items_of


class Shelf:
    """A service that knows the labels of even numbers."""

    def __init__(self) -> None:
        self.requests: list[list[str]] = []
        self.open = asyncio.Event()
        self.open.set()
        self.error: Exception | None = None

    async def fetch(self, keys: Sequence[str], ctx: Any) -> Mapping[str, Any]:
        self.requests.append(list(keys))
        await self.open.wait()
        if self.error is not None:
            raise self.error
        return {key: {"label": f"label {key}"} for key in keys if int(key) % 2 == 0}


class Demo(Pipeline):
    name = "demo"
    max_attempts = 2
    min_concurrency = 16

    def __init__(self, shelf: Shelf, **limits: Any) -> None:
        self.loaders = {"label": Loader(shelf.fetch, **limits)}
        super().__init__()

    async def process(self, row: Json, ctx: Context) -> Json:
        return {"n": row["n"], "label": await ctx.load("label", str(row["n"]))}


async def test_items_that_run_together_share_requests(store: Store) -> None:
    shelf = Shelf()
    job_id = await filled_job(store, 40)
    await work(store, Demo(shelf, wait_seconds=0.2))
    assert sorted(int(key) for keys in shelf.requests for key in keys) == list(range(40))
    assert len(shelf.requests) < 20
    results = [orjson.loads(item.result or "") for item in await items_of(store, job_id)]
    assert [row["label"] for row in results[:2]] == [{"label": "label 0"}, None]


async def test_full_batch_is_sent_at_once_and_the_rest_when_its_time_is_up(store: Store) -> None:
    shelf = Shelf()
    load = facilities_of(store, Demo(shelf, max_batch=3, wait_seconds=0.01)).load
    await asyncio.gather(*(load("label", str(n)) for n in range(7)))
    assert [len(keys) for keys in shelf.requests] == [3, 3, 1]


async def test_keys_collect_while_all_requests_are_busy(store: Store) -> None:
    shelf = Shelf()
    shelf.open.clear()
    limits = {"concurrency": 1, "wait_seconds": 0.0, "max_batch": 10}
    load = facilities_of(store, Demo(shelf, **limits)).load
    first = asyncio.create_task(load("label", "0"))
    while not shelf.requests:
        await asyncio.sleep(0)
    others = [asyncio.create_task(load("label", str(n))) for n in range(1, 6)]
    await asyncio.sleep(0)
    shelf.open.set()
    await asyncio.gather(first, *others)
    assert shelf.requests == [["0"], ["1", "2", "3", "4", "5"]]


async def test_one_key_is_fetched_once_however_many_wait(store: Store) -> None:
    shelf = Shelf()
    load = facilities_of(store, Demo(shelf)).load
    values = await asyncio.gather(*(load("label", "4") for _ in range(30)))
    assert values == [{"label": "label 4"}] * 30
    assert shelf.requests == [["4"]]


@pytest.mark.parametrize(
    "error", [ItemError("RATE_LIMITED", "slow down", retry_after=9), Retry(after=5), ValueError()]
)
async def test_error_reaches_all_items_and_the_next_load_tries_again(
    store: Store, error: Exception
) -> None:
    shelf = Shelf()
    shelf.error = error
    load = facilities_of(store, Demo(shelf, cache_seconds=60)).load
    loads = [load("label", str(n)) for n in (2, 2, 4)]
    assert await asyncio.gather(*loads, return_exceptions=True) == [error] * 3
    shelf.error = None
    assert await load("label", "2") == {"label": "label 2"}


async def test_error_of_one_key_is_raised_for_it_alone(store: Store) -> None:
    async def fetch(keys: Sequence[str], ctx: Any) -> Mapping[str, Any]:
        return {"good": 1, "bad": NotFound("gone")}

    demo = Demo(Shelf())
    demo.loaders = {"label": Loader(fetch, cache_seconds=60)}
    load = facilities_of(store, demo).load
    good, bad = await asyncio.gather(
        load("label", "good"), load("label", "bad"), return_exceptions=True
    )
    assert good == 1 and isinstance(bad, NotFound)
    assert await store.cache.read("demo.label", ["good", "bad"]) == {"good": 1}


async def test_value_that_is_not_json_fails_its_key_alone(store: Store) -> None:
    async def fetch(keys: Sequence[str], ctx: Any) -> Mapping[str, Any]:
        return {key: "\ud800" if key == "1" else f"label {key}" for key in keys}

    class Half(Demo):
        def __init__(self) -> None:
            super().__init__(Shelf())
            self.loaders = {"label": Loader(fetch, wait_seconds=0.1, cache_seconds=60)}

    facilities = facilities_of(store, Half())
    for _ in range(2):  # the second time from the cache
        loads = [facilities.load("label", str(number)) for number in range(3)]
        first, unfit, last = await asyncio.gather(*loads, return_exceptions=True)
        assert (first, last) == ("label 0", "label 2")
        assert isinstance(unfit, ItemError) and unfit.code == "INVALID_RESULT"


async def test_item_that_is_cancelled_leaves_the_request_to_the_others(store: Store) -> None:
    shelf = Shelf()
    shelf.open.clear()
    load = facilities_of(store, Demo(shelf)).load
    given_up, waiting = (asyncio.create_task(load("label", "6")) for _ in range(2))
    while not shelf.requests:
        await asyncio.sleep(0)
    given_up.cancel()
    shelf.open.set()
    assert await waiting == {"label": "label 6"}


async def test_request_that_never_ends_times_out_for_all(store: Store) -> None:
    shelf = Shelf()
    shelf.open.clear()
    load = facilities_of(store, Demo(shelf), timeout=0.05).load
    loads = [load("label", str(n)) for n in range(2)]
    errors = await asyncio.gather(*loads, return_exceptions=True)
    assert [type(error) for error in errors] == [TimeoutError] * 2


async def test_no_more_keys_wait_than_allowed(store: Store) -> None:
    shelf = Shelf()
    shelf.open.clear()
    limits = {"max_waiting": 2, "max_batch": 1, "concurrency": 9}
    load = facilities_of(store, Demo(shelf, **limits)).load
    loads = [asyncio.create_task(load("label", str(n))) for n in range(5)]
    while len(shelf.requests) < 2:
        await asyncio.sleep(0)
    for _ in range(20):
        await asyncio.sleep(0)
    assert shelf.requests == [["0"], ["1"]]
    shelf.open.set()
    await asyncio.gather(*loads)
    assert len(shelf.requests) == 5


async def test_values_and_misses_are_found_in_the_cache_by_later_jobs(store: Store) -> None:
    shelf = Shelf()
    demo = Demo(shelf, cache_seconds=60, missing_seconds=60)
    for _ in range(2):
        load = facilities_of(store, demo).load
        values = await asyncio.gather(*(load("label", str(n)) for n in range(4)))
        assert values == [{"label": "label 0"}, None, {"label": "label 2"}, None]
    assert shelf.requests == [["0", "1", "2", "3"]]


async def test_only_what_the_cache_does_not_have_is_fetched(store: Store) -> None:
    shelf = Shelf()
    demo = Demo(shelf, cache_seconds=60)
    await facilities_of(store, demo).load("label", "2")
    load = facilities_of(store, demo).load
    await asyncio.gather(*(load("label", key) for key in ("1", "2", "4")))
    assert shelf.requests == [["2"], ["1", "4"]]


async def test_loader_that_is_not_declared_is_named(store: Store) -> None:
    with pytest.raises(PipelineError, match="no loader 'labels'"):
        await facilities_of(store, Demo(Shelf())).load("labels", "1")


async def test_items_fail_by_the_code_of_a_loader_that_fails(store: Store) -> None:
    shelf = Shelf()
    shelf.error = ItemError("ACCESS_DENIED", "no key")
    job_id = await filled_job(store, 3)
    await work(store, Demo(shelf))
    items = await items_of(store, job_id)
    assert [(item.status, item.error_code) for item in items] == [
        (ItemStatus.ERROR, "ACCESS_DENIED")
    ] * 3


async def test_pipeline_keeps_values_of_its_own_for_a_while(store: Store) -> None:
    cache = facilities_of(store, Demo(Shelf())).cache
    await cache.put("token", {"value": "abc"}, seconds=60)
    await cache.put_many({"absent": None}, seconds=60)
    assert await cache.get("token") == {"value": "abc"}
    assert await cache.get_many(["token", "absent", "other"]) == {
        "token": {"value": "abc"},
        "absent": None,
    }
    assert await cache.get("absent", "unknown") is None
    await cache.drop("token", "absent")
    assert await cache.get("token", "unknown") == "unknown"
    with pytest.raises(ItemError, match="TOO_LARGE"):
        await cache.put("large", "x" * 2000, seconds=60)


class Plain(Pipeline):
    """Its `process` runs in a thread."""

    name = "demo"

    def __init__(self, shelf: Shelf) -> None:
        self.loaders = {"label": Loader(shelf.fetch)}
        super().__init__()

    def process(self, row: Json, ctx: Context) -> Json:
        ctx.cache.put("last", row["n"], seconds=60)
        return {"label": ctx.load("label", "8"), "last": ctx.cache.get("last")}


async def test_plain_function_loads_and_caches_without_await(store: Store) -> None:
    job_id = await filled_job(store, 1)
    await work(store, Plain(Shelf()))
    [item] = await items_of(store, job_id)
    assert orjson.loads(item.result or "") == {"label": {"label": "label 8"}, "last": 0}
