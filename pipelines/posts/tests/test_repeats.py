"""Repeated, reordered and mixed-up events change nothing; one bad item costs only itself."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from holdfast.kernel import Store
from pipelines.posts.tests.desk import Desk
from pipelines.posts.tests.scene import Scene, failed_post, post
from tests.store.checks import fetch


async def test_repeated_and_reordered_events_change_nothing(scene: Scene) -> None:
    older = await scene.put("old.json", [post(1, "old", crawled_at="2026-01-01T00:00:00Z")])
    newer = await scene.put("new.json", [post(1, "new", crawled_at="2026-01-03T00:00:00Z")])
    failed = await scene.put("failed.json", [failed_post(2, "TIMEOUT")])
    events = [
        scene.event(newer, "evt_new"), scene.event(older, "evt_old"),
        scene.event(failed, "evt_failed"), scene.event(newer, "evt_again"),
    ]  # fmt: skip
    async with scene.consuming() as pipeline:
        for event in (*events, *reversed(events)):
            await scene.send(event)
            await scene.work(pipeline)
        await scene.until_events(4, "TAKEN", "REPEATED")
        await scene.until(lambda: _is_empty(scene))
        await scene.work(pipeline)
    states = {row["key"]: row["state"] for row in await scene.events()}
    assert states == {
        "event:evt_new": "TAKEN", "event:evt_old": "TAKEN", "event:evt_failed": "TAKEN",
        "event:evt_again": "REPEATED",
    }  # fmt: skip
    assert [row["text"] for row in await scene.posts()] == ["new"]
    assert len(await scene.errors()) == 1
    assert [row["success_count"] + row["error_count"] for row in await scene.batches()] == [1, 1, 1]


async def test_id_that_came_with_another_batch_does_not_make_a_batch_known(store: Store) -> None:
    """A crawler that restarts may count from the beginning again. Neither batch is lost, whether
    the events are processed, parked or wait for their batches."""
    desk = Desk(store)
    taken = [{**desk.event(name, [post(name)]), "event_id": "evt_1"} for name in "ab"]
    late = [{**desk.event(name, [post(name)]), "event_id": "evt_1"} for name in "cd"]
    batches, desk.batches = desk.batches, {name: desk.batches[name] for name in "ab"}
    for event in (*taken, *late, *taken, *late):
        await desk.take(event)
    states = "select batch_key, state, attempts from posts_events order by batch_key"
    assert await fetch(store, states) == [
        ("b/a", "TAKEN", 1), ("b/b", "TAKEN", 1), ("b/c", "WAITING", 2), ("b/d", "WAITING", 2),
    ]  # fmt: skip
    desk.batches = batches
    for event in late:
        await desk.take(event)
    await desk.work()
    assert await fetch(store, "select count(*) from posts_analytics") == [(4,)]
    assert await fetch(store, "select count(*) from posts_batches") == [(4,)]


async def _is_empty(scene: Scene) -> bool:
    return await scene.waiting() == 0


async def test_two_copies_at_once_are_taken_once(scene: Scene) -> None:
    path = await scene.put("a.json", [post(number) for number in range(20)])
    async with scene.consuming() as pipeline:
        await asyncio.gather(*(scene.send(scene.event(path, f"evt_{n % 3}")) for n in range(12)))
        await scene.until_events(3, "TAKEN", "REPEATED")
        await scene.until(lambda: _is_empty(scene))
        await scene.work(pipeline)
    assert len(await scene.posts()) == 20
    assert len(await scene.batches()) == 1


async def test_one_bad_item_among_fifty_costs_only_itself(scene: Scene) -> None:
    items = [orjson.dumps(post(number)) for number in range(50)]
    items[7] = b'{"comments": ' + b"[" * 10_000 + b"]" * 10_000 + b"}"
    items[8] = b'{"meta": {"platform": "tiktok"}}'
    path = await scene.put("a.json", b"[" + b",".join(items) + b"]")
    async with scene.consuming() as pipeline:
        await scene.send(scene.event(path))
        await scene.until_events(1, "TAKEN")
        await scene.work(pipeline)
    batch = (await scene.batches())[0]
    counts = [batch[name] for name in ("success_count", "error_count", "failed_count", "state")]
    assert counts == [48, 0, 2, "DONE"]
    failed = await scene.rows("select position from posts_batch_items where status = 'failed'")
    assert [row["position"] for row in failed] == [7, 8]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_text_that_a_database_refuses_costs_nothing(scene: Scene) -> None:
    strange = {**post(1, "a\x00b"), "comments": [{"text": "\x00"}]}
    path = await scene.put("a.json", [strange, post("2\x00")])
    async with scene.consuming() as pipeline:
        await scene.send(scene.event(path))
        await scene.until_events(1, "TAKEN")
        await scene.work(pipeline)
    assert [row["content_id"] for row in await scene.posts()] == ["1", "2"]


async def test_same_post_of_two_projects_is_two_posts_and_sums_are_right(scene: Scene) -> None:
    first = await scene.put("x.json", [post(1, "I love it"), failed_post(9, "TIMEOUT")])
    second = await scene.put("y.json", [post(1, "I love it"), post(2, "I hate it")])
    third = await scene.put(
        "z.json",
        [post(2, "I love it", crawled_at="2026-01-05T00:00:00Z", published_at="2026-01-02")],
    )
    named = {"job_id": "proj_y-brand-0", "project_id": "proj_y"}
    async with scene.consuming() as pipeline:
        await scene.send(scene.event(first, "evt_1"))
        await scene.send(scene.event(second, "evt_2", **named))
        await scene.until_events(2, "TAKEN")
        await scene.work(pipeline)
        await scene.send(scene.event(third, "evt_3", **named))
        await scene.until_events(3, "TAKEN")
        await scene.work(pipeline)
        while await scene.store.plans.tend(pipeline.tend):
            pass
    days = await scene.rows(
        "select scope, day, sentiment, posts from posts_days order by scope, day, sentiment"
    )
    assert [tuple(row.values()) for row in days] == [
        ("proj_x", "2026-01-01", "POSITIVE", 1),
        ("proj_y", "2026-01-01", "POSITIVE", 1),
        ("proj_y", "2026-01-02", "POSITIVE", 1),
    ]
    errors = await scene.rows("select scope, code, errors from posts_error_days")
    assert [tuple(row.values()) for row in errors] == [("proj_x", "TIMEOUT", 1)]
