"""Real processes, killed at each write of posts and between commit and acknowledgement: the next
one finds everything, once."""

from __future__ import annotations

import asyncio

import pytest

from pipelines.posts.tests.scene import Scene, failed_post, post
from tests.chaos.children import Children
from tests.store.checks import fetch

KILLED = -9
TAKING = (
    "posts_take_event", "posts_add_batch", "add_job", "set_job_state", "add_audit", "tell_workers",
    "take_sequence", "add_enqueued_items", "add_enqueued_range", "count_added", "commit",
    "committed",
)  # fmt: skip
SETTLING = (
    "settle_rest", "copy outcomes", "posts_insert", "posts_replace", "posts_change_days",
    "posts_add_errors", "posts_change_error_days", "posts_add_items", "posts_set_counts",
    "send_message", "count", "commit", "committed",
)  # fmt: skip
TENDING = (
    "posts_add_to_days", "posts_drop_empty_days", "posts_forget_day_changes",
    "posts_add_to_error_days", "posts_forget_error_day_changes", "commit",
)  # fmt: skip
#: A worker that died gives its leases back after a second.
QUICK = {
    "HOLDFAST_LOCK_FLOOR_MS": "2000",
    "HOLDFAST_LOCK_CAP_MS": "2000",
    "HOLDFAST_SWEEP_SECONDS": "0.2",
    "HOLDFAST_LOG_LEVEL": "error",
}
pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def _send(scene: Scene) -> None:
    """A post that is replaced, a failure of the crawler, and an item that is none."""
    async with scene.consuming():
        pass  # declares the queues
    path = await scene.put("a.json", [post(1), failed_post(2, "TIMEOUT"), {}])
    await scene.send(scene.event(path))


def _killed(scene: Scene, children: Children, url: str, fault: str, *command: str) -> None:
    environment = {
        **scene.environment, **scene.names, **QUICK, "HOLDFAST_DATABASE_URL": url,
        "HOLDFAST_FAULT": fault,
    }  # fmt: skip
    if command[0] == "work":
        del environment["HOLDFAST_BROKER_URL"]
    child = children.holdfast([*command], environment)
    assert child.wait(60) == KILLED, child.said()


async def _assert_exact(scene: Scene) -> None:
    assert [row["content_id"] for row in await scene.posts()] == ["1"]
    assert [row["content_id"] for row in await scene.errors()] == ["2"]
    counts = [
        [row[name] for name in ("success_count", "error_count", "failed_count", "state")]
        for row in await scene.batches()
    ]
    assert counts[-1] == [1, 1, 1, "DONE"]
    sums = await scene.rows("select sum(posts) as posts from posts_days")
    assert sums[0]["posts"] == 1
    errors = await scene.rows("select sum(errors) as errors from posts_error_days")
    assert errors[0]["errors"] == 1
    sent = await scene.rows("select message_id from outbox where routing_key = 'analysis.finished'")
    assert len(sent) == len(counts)


async def _finish(scene: Scene) -> None:
    pipeline = scene.pipeline()
    await scene.work(pipeline)
    while await scene.store.plans.tend(pipeline.tend):
        pass


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("point", TAKING)
async def test_consumer_killed_at_a_write_or_before_the_acknowledgement(
    scene: Scene, children: Children, database_url: str, point: str
) -> None:
    await _send(scene)
    fault = f"enqueue/{point}"
    await asyncio.to_thread(_killed, scene, children, database_url, fault, "consume", "posts")
    # Its message has been delivered once, though the process had several consumers.
    async with scene.consuming():
        await scene.until_events(1, "TAKEN")
    await _finish(scene)
    await _assert_exact(scene)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(
    "fault",
    [*(f"settle/{point}" for point in SETTLING), *(f"tend/{point}" for point in TENDING)],
)
async def test_worker_killed_at_a_write(
    scene: Scene, children: Children, database_url: str, fault: str
) -> None:
    older = await scene.put("old.json", [post(1, crawled_at="2026-01-01T00:00:00Z")])
    await _send(scene)
    async with scene.consuming() as pipeline:
        await scene.until_events(1, "TAKEN")
        if fault == "settle/posts_replace":
            await scene.work(pipeline)
            newer = post(1, crawled_at="2026-02-01T00:00:00Z")
            older = await scene.put("new.json", [newer])
        await scene.send(scene.event(older, "evt_2"))
        await scene.until_events(2, "TAKEN")
    command = ("work", "posts", "--until-idle")
    await asyncio.to_thread(_killed, scene, children, database_url, fault, *command)
    await _finish(scene)
    assert len(await fetch(scene.store, "select 1 from posts_batches where state = 'DONE'")) == 2
    sums = await scene.rows("select sum(posts) as posts from posts_days")
    assert sums[0]["posts"] == len(await scene.posts()) == 1
    assert len(await scene.errors()) == 1
    sent = await scene.rows("select message_id from outbox where routing_key = 'analysis.finished'")
    assert len(sent) == 2
