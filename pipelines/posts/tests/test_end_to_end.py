"""Messages of every format, from a real broker and a real bucket to exactly the right rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import zstandard

import holdfast_posts as posts
from pipelines.posts.tests.scene import Scene, failed_post, post
from tests.store.checks import fetch

UUID = "550e8400-e29b-41d4-a716-446655440000"


async def test_events_of_every_format_end_in_the_right_rows(scene: Scene) -> None:
    first = await scene.put("a.json", [post(1), post(2), failed_post(3, "RATE_LIMITED")])
    packed = zstandard.compress(orjson.dumps({"items": [post(4)], "count": 1}))
    second = await scene.put("b.json", packed)
    dry = await scene.put("dry.json", [post(1)])
    await scene.put("one.json", post(5, job_id="proj_z-brand-0"))
    legacy = {"bucket": second.partition("/")[0], "path": f"{scene.prefix}/one.json"}
    async with scene.consuming() as pipeline:
        await scene.publish(scene.event(first))
        await scene.send(scene.event(second, "evt_2", job_id=f"{UUID}-competitor-a-b-1"))
        await scene.send(scene.event(dry, "evt_3", job_id=UUID, project_id=None))
        await scene.send({"data_ref": legacy}, "legacy")
        await scene.send(post(6, job_id="proj_x-brand-0"), "legacy")
        await scene.until_events(5, "TAKEN")
        assert await scene.waiting() == await scene.waiting("legacy") == 0
        await scene.work(pipeline)
    stored = [(row["scope"], row["content_id"], row["project_id"]) for row in await scene.posts()]
    assert stored == [
        (UUID, "4", UUID),
        (f"dryrun:{UUID}", "1", None),
        ("proj_x", "1", "proj_x"),
        ("proj_x", "2", "proj_x"),
        ("proj_x", "6", "proj_x"),
        ("proj_z", "5", "proj_z"),
    ]
    errors = await scene.errors()
    assert [(row["content_id"], row["error_code"]) for row in errors] == [("3", "RATE_LIMITED")]
    assert errors[0]["error_category"] == "rate_limiting"
    assert errors[0]["retry_class"] == "throttle"
    assert {row["state"] for row in await scene.batches()} == {"DONE"}
    topics = await fetch(scene.store, "select topic from jobs order by topic")
    expected = ["dry runs", f"project {UUID}", "project proj_x", "project proj_z"]
    assert [row[0] for row in topics] == expected
    sent = await fetch(scene.store, "select payload from outbox where exchange is not null")
    bodies = [orjson.loads(row[0]) for row in sent]
    counts = {body["payload"]["minio_path"]: body["payload"] for body in bodies}
    assert len(counts) == 5
    assert (counts[first]["success_count"], counts[first]["error_count"]) == (2, 1)
    assert counts[first]["errors"] == [{"content_id": "3", "error": "RATE_LIMITED"}]


async def test_documented_event_is_taken(scene: Scene) -> None:
    page = (Path(posts.__file__).parent / "docs" / "index.md").read_text()
    event = orjson.loads(page.partition("```json\n")[2].partition("```")[0])
    event["payload"]["minio_path"] = await scene.put("batch_000.json", [post(1)])
    async with scene.consuming() as pipeline:
        await scene.publish(event)
        await scene.until_events(1, "TAKEN")
        await scene.work(pipeline)
    assert [row["project_id"] for row in await scene.posts()] == ["proj_x"]


async def test_unknown_message_becomes_a_dead_letter_and_the_next_is_taken(scene: Scene) -> None:
    path = await scene.put("a.json", [])
    async with scene.consuming():
        await scene.send(b'{"payload": null}')
        await scene.send(scene.event(path))
        await scene.until_events(1, "TAKEN")
        async with scene.connection.channel() as channel:
            name = f"{scene.environment['HOLDFAST_QUEUE_PREFIX']}.dead"
            queue = await channel.get_queue(name, ensure=False)
            await scene.until(lambda: _has_one(scene, name))
            letter = await queue.get()
            await letter.ack()
    assert letter.body == b'{"payload": null}'
    assert letter.headers["x-holdfast-code"] == "UNKNOWN_FORMAT"


async def _has_one(scene: Scene, name: str) -> bool:
    async with scene.connection.channel() as channel:
        declared = await channel.declare_queue(name, passive=True)
        return bool(declared.declaration_result.message_count)


async def test_metrics_count_what_happened(scene: Scene) -> None:
    items = [post(1), failed_post(2, "TIMEOUT"), failed_post(3, "ODD"), {"meta": {}}]
    path = await scene.put("a.json", items)
    async with scene.consuming() as pipeline:
        await scene.send(scene.event(path, content_count=50))
        await scene.until_events(1, "TAKEN")
        await scene.send(scene.event(path))
        await scene.until(lambda: _is_read(scene))
        await scene.work(pipeline)
    metrics = pipeline.metrics

    def count(counter: Any, *labels: str) -> float:
        return float(counter.labels(*labels)._value.get())

    assert count(metrics.events, "event", "taken") == 1
    assert [count(metrics.items, "tiktok", name) for name in ("success", "error", "failed")] == [
        1, 2, 1,
    ]  # fmt: skip
    assert count(metrics.errors, "TIMEOUT", "network") == 1
    assert count(metrics.errors, "OTHER", "generic") == 1
    assert [count(metrics.warnings, kind) for kind in ("size", "count")] == [1, 1]


async def _is_read(scene: Scene) -> bool:
    return await scene.waiting() == 0
