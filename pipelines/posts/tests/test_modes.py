"""Formats that are switched off are parked and come back; batches that are late are waited for."""

from __future__ import annotations

import pytest

from holdfast.flags import in_share
from holdfast_posts.releasing import release, roll_back
from pipelines.posts.tests.scene import Scene, post

_EVENT, _LEGACY = "posts_new_mode", "posts_legacy_mode"


async def _flag(scene: Scene, name: str, value: object) -> None:
    await scene.store.flags.set_flag(name, value, "tester")


async def test_disabled_formats_are_parked_and_processed_when_they_are_on(scene: Scene) -> None:
    path = await scene.put("a.json", [post(1)])
    await _flag(scene, _EVENT, False)
    await _flag(scene, _LEGACY, False)
    async with scene.consuming(relays=True) as pipeline:
        await scene.send(scene.event(path))
        await scene.send(post(2, job_id="proj_x-brand-0"), "legacy")
        await scene.until_events(2, "PARKED")
        codes = {row["format"]: row["code"] for row in await scene.events()}
        assert codes == {"event": "NEW_MODE_OFF", "inline": "LEGACY_MODE_OFF"}
        assert await scene.batches() == []
        await _flag(scene, _EVENT, True)
        await _flag(scene, _LEGACY, True)
        await scene.until_events(2, "TAKEN")
        await scene.work(pipeline)
    assert [row["content_id"] for row in await scene.posts()] == ["1", "2"]
    assert all(row["body"] is None for row in await scene.events())


async def test_setting_that_is_off_wins_over_the_flag(scene: Scene) -> None:
    scene.environment = {**scene.environment, "NEW_MODE_ENABLED": "false"}
    path = await scene.put("a.json", [post(1)])
    async with scene.consuming():
        await scene.send(scene.event(path))
        await scene.until_events(1, "PARKED")


async def test_canary_keeps_a_job_in_one_mode(scene: Scene) -> None:
    jobs = [f"proj_{number}-brand-0" for number in range(40)]
    path = await scene.put("a.json", [])
    await _flag(scene, "posts_canary", 50)
    async with scene.consuming():
        for number, job in enumerate(jobs):
            # Each has a batch of its own, all of them empty.
            other = path.replace("a.json", f"{number}.json")
            await scene.put(f"{number}.json", [])
            payload = {"job_id": job, "project_id": job.partition("-")[0]}
            await scene.send(scene.event(other, f"evt_{number}", **payload))
        await scene.until_events(40, "TAKEN", "PARKED")
    taken = {row["job_id"] for row in await scene.events() if row["state"] == "TAKEN"}
    assert taken == {job for job in jobs if in_share(50, job)}
    assert 0 < len(taken) < 40


async def test_late_batch_is_waited_for(scene: Scene) -> None:
    async with scene.consuming(relays=True) as pipeline:
        path = await scene.put("here.json", [])
        late = path.replace("here.json", "late.json")
        await scene.send(scene.event(late))
        await scene.until_events(1, "WAITING")
        await scene.put("late.json", [post(1)])
        await scene.until_events(1, "TAKEN")
        await scene.work(pipeline)
    assert [row["content_id"] for row in await scene.posts()] == ["1"]


async def test_batch_that_never_comes_is_dead_until_it_is_released(scene: Scene) -> None:
    scene.environment = {**scene.environment, "HOLDFAST_POSTS_MISSING_TRIES": "2"}
    path = (await scene.put("here.json", [])).replace("here.json", "never.json")
    async with scene.consuming(relays=True):
        await scene.send(scene.event(path))
        await scene.until_events(1, "DEAD")
        row = (await scene.events())[0]
        assert (row["code"], row["attempts"]) == ("BATCH_MISSING", 1)
        await scene.put("never.json", [])
        assert await release(scene.store, "DEAD", None, "tester") == 1
        await scene.until_events(1, "TAKEN")
    audit = await scene.rows("select action, actor from audit where action = 'posts.release'")
    assert audit == [{"action": "posts.release", "actor": "tester"}]


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"{", "BATCH_CORRUPT"), (b"", "BATCH_CORRUPT"),
     (b"[" + b"1," * 10_000 + b"1]", "BATCH_TOO_LARGE")],
)  # fmt: skip
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_batch_that_cannot_be_read_is_dead(scene: Scene, content: bytes, code: str) -> None:
    path = await scene.put("bad.json", content)
    async with scene.consuming():
        await scene.send(scene.event(path))
        await scene.until_events(1, "DEAD")
    assert [row["code"] for row in await scene.events()] == [code]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_other_buckets_are_not_read(scene: Scene) -> None:
    async with scene.consuming():
        await scene.send(scene.event("holdfast/secret.json"))
        await scene.until_events(1, "DEAD")
    assert (await scene.events())[0]["code"] == "BUCKET_NOT_ALLOWED"


async def test_shadow_mode_reports_differences_and_stores_nothing(scene: Scene) -> None:
    path = await scene.put("a.json", [post(1, "I love it, wonderful"), post(2)])
    async with scene.consuming() as pipeline:
        await scene.send(post(1, "I hate it, awful", job_id="proj_x-brand-0"), "legacy")
        await scene.until_events(1, "TAKEN")
        await scene.work(pipeline)
        before = await scene.posts()
        await _flag(scene, _EVENT, False)
        await _flag(scene, "posts_shadow", True)
    async with scene.consuming() as pipeline:
        await scene.send(scene.event(path))
        await scene.until_events(1, "PARKED")
        await scene.work(pipeline)
    assert await scene.posts() == before
    found = await scene.rows("select content_id, field, stored, shadow from posts_differences")
    different = {(row["content_id"], row["field"]): (row["stored"], row["shadow"]) for row in found}
    assert different["1", "overall_sentiment"] == ("NEGATIVE", "POSITIVE")
    assert different["2", "presence"] == (None, "present")
    sent = await scene.rows("select 1 from outbox where routing_key = 'analysis.finished'")
    assert len(sent) == 1, "only of the legacy post"


async def test_rollback_is_one_order(scene: Scene) -> None:
    await _flag(scene, _LEGACY, False)
    await roll_back(scene.store, "tester")
    flags = await scene.store.flags.all()
    assert (flags[_EVENT]["value"], flags[_LEGACY]["value"]) == (False, True)
