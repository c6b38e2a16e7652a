"""Bad messages, batches and posts: each ends where it should, and nothing else suffers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest
import zstandard

from holdfast.consumers import BadMessage
from holdfast.kernel import Store
from pipelines.posts.tests.desk import Desk
from pipelines.posts.tests.scene import Scene, post
from tests.fixtures import INCOMING
from tests.store.checks import fetch

only_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"null", "UNKNOWN_FORMAT"),
        (b"[]", "UNKNOWN_FORMAT"),
        (b"7", "UNKNOWN_FORMAT"),
        (b'"' + b"x" * 10_000_000 + b'"', "TOO_LARGE"),
        (b'{"payload": {"job_id": "proj_x-brand-0"}}', "UNKNOWN_FORMAT"),
        (b'{"payload": {"job_id": "proj_x-brand-0", "minio_path": "b/../x"}}', "BAD_PATH"),
        (b'{"payload": {"job_id": "proj_x-brand-0", "minio_path": "b\\u0000/x"}}', "BAD_PATH"),
    ],
    ids=["null", "list", "number", "10 MB", "no path", "dots", "NUL"],
)
@only_sqlite
async def test_message_that_is_none_is_refused(store: Store, body: bytes, code: str) -> None:
    desk = Desk(store)
    with pytest.raises(BadMessage) as refused:
        await desk.take(body)
    assert refused.value.code == code
    assert await fetch(store, "select 1 from posts_events") == []


BATCHES: dict[str, tuple[Callable[[], bytes], str]] = {
    "a million items": (lambda: b"[" + b"{}," * 999_999 + b"{}]", "BATCH_TOO_LARGE"),
    "a bomb": (lambda: zstandard.compress(bytes(200_000_000)), "BATCH_TOO_LARGE"),
    "not JSON": (lambda: b"<Error><Code>NoSuchKey</Code></Error>", "BATCH_CORRUPT"),
    "cut off": (lambda: orjson.dumps([post(1)])[:-5], "BATCH_CORRUPT"),
}


@pytest.mark.parametrize("name", BATCHES)
@only_sqlite
async def test_batch_that_cannot_be_read_is_dead(store: Store, name: str) -> None:
    desk = Desk(store)
    content, code = BATCHES[name]
    await desk.take(desk.event("a", content()))
    assert await fetch(store, "select state, code from posts_events") == [("DEAD", code)]


POSTS: dict[str, tuple[bytes, str]] = {
    "5 MB": (orjson.dumps(post("bad", "nice " * 1_000_000)), "success"),
    "deep comments": (b'{"comments": ' + b"[" * 10_000 + b"]" * 10_000 + b"}", "failed"),
    "unknown platform": (orjson.dumps(post("bad", platform="MYSPACE")), "success"),
    "counts": (orjson.dumps({**post("bad"), "interaction": {"views": -1, "likes": "x"}}),
               "success"),
    "times": (orjson.dumps(post("bad", published_at="2099-01-01", crawled_at="x")), "success"),
    "no zone": (orjson.dumps(post("bad", published_at="2026-01-01T00:00:00")), "success"),
    "huge numbers": (b'{"meta": {"id": "bad", "platform": "x"}, "interaction": {"views": 1e308}}',
                     "success"),
    "null": (b"null", "failed"),
    "text": (b'"text"', "failed"),
}  # fmt: skip


@pytest.mark.parametrize("name", POSTS)
@only_sqlite
async def test_odd_post_costs_at_most_itself(store: Store, name: str) -> None:
    desk = Desk(store)
    odd, status = POSTS[name]
    good = orjson.dumps(post("good"))
    await desk.take(desk.event("a", b"[" + good + b"," + odd + b"]"))
    await desk.work()
    found = await fetch(store, "select status from posts_batch_items order by position")
    assert [row[0] for row in found] == ["success", status]
    assert await fetch(store, "select state from posts_batches") == [("DONE",)]


async def test_odd_values_can_be_stored(store: Store) -> None:
    """On each database: what passed the normaliser fits the columns."""
    desk = Desk(store)
    strange: dict[str, Any] = post("x" * 100, "😀 ế" * 500, permalink="y" * 5000)
    strange["interaction"] = {"views": 2**63 - 1, "likes": 2**63, "shares": "9" * 19}
    strange["author"] = {"id": 12345678901234567890, "followers": 2**63 - 1, "name": "\x00"}
    await desk.take(desk.event("a", [strange, post("2")], keyword="k" * 1000, batch_index=2**62))
    await desk.work()
    rows = await fetch(store, "select view_count, like_count from posts_analytics order by 1 desc")
    assert rows[0] == (2**63 - 1, None)
    assert len(rows) == 2


async def test_bad_messages_through_the_broker_stop_nothing(scene: Scene) -> None:
    """Each ends as a dead letter or a dead event, and a good event behind them is processed."""
    refused = [
        b"null", b"[]", b"7", b"", b'"' + b"x" * 10_000_000 + b'"',
        orjson.dumps({"payload": {"job_id": "proj_x-brand-0"}}),
        orjson.dumps(scene.event(f"{INCOMING}/../secret", "evt_dots")),
    ]  # fmt: skip
    huge = await scene.put("million.json", b"[" + b"{}," * 999_999 + b"{}]")
    bomb = await scene.put("bomb.json", zstandard.compress(bytes(200_000_000)))
    odd = [odd for odd, _ in POSTS.values()]
    good = await scene.put("good.json", b"[" + b",".join([*odd, orjson.dumps(post(1))]) + b"]")
    async with scene.consuming() as pipeline:
        for body in refused:
            await scene.send(body)
        for number, path in enumerate((huge, bomb, "holdfast/secret.json")):
            await scene.send(scene.event(path, f"evt_{number}"))
        await scene.send(scene.event(good, "evt_good"))
        await scene.until_events(3, "DEAD")
        await scene.until_events(1, "TAKEN")
        await scene.work(pipeline)
        async with scene.connection.channel() as channel:
            dead = f"{scene.environment['HOLDFAST_QUEUE_PREFIX']}.dead"
            queue = await channel.declare_queue(dead, passive=True)
            assert queue.declaration_result.message_count == len(refused)
    codes = [row["code"] for row in await scene.events() if row["state"] == "DEAD"]
    assert sorted(codes) == ["BATCH_TOO_LARGE", "BATCH_TOO_LARGE", "BUCKET_NOT_ALLOWED"]
    batch = (await scene.batches())[0]
    successes = 1 + sum(status == "success" for _, status in POSTS.values())
    assert (batch["state"], batch["success_count"]) == ("DONE", successes)
