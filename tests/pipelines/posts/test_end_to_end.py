"""Messages of every format, from a real broker and a real bucket to exactly the right rows."""

from __future__ import annotations

import orjson
import zstandard

from tests.pipelines.posts.scene import Scene, failed_post, post
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
