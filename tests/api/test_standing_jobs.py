"""Standing jobs over HTTP: opened under the same rules as other jobs, and found while idle."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.api.server import ApiServer, finished, upload

OPEN = {"pipeline": "lengths", "standing": True}


async def test_standing_job_is_opened_once_for_each_person_and_takes_records(
    server: ApiServer,
) -> None:
    ada, bob = await server.person("ada"), await server.person("bob")
    key = {"Idempotency-Key": "one"}
    replies = [await ada.post("/api/jobs", json=OPEN, headers=key) for _ in range(2)]
    replies += await asyncio.gather(*(ada.post("/api/jobs", json=OPEN) for _ in range(3)))
    assert {reply.status_code for reply in replies} == {202}
    (job_id,) = {reply.json()["id"] for reply in replies}
    shown = replies[0].json()
    assert (shown["standing"], shown["idle"], shown["ownerId"]) == (True, True, "ada")
    other = (await bob.post("/api/jobs", json=OPEN)).json()
    assert other["id"] != job_id
    added = await ada.post(f"/api/jobs/{job_id}/items", json=[{"title": "oak"}])
    assert added.json()["accepted"] == 1
    await server.work(job_id)
    assert (await ada.get(f"/api/jobs/{job_id}")).json()["counters"]["done"] == 1


async def test_what_a_standing_job_cannot_have_is_refused_and_leaves_nothing(
    server: ApiServer,
) -> None:
    ada, rita = await server.person("ada"), await server.person("rita", "reader")
    file = (await ada.post("/api/files", files={"file": ("a.csv", b"title\noak\n")})).json()
    refused = [
        await ada.post("/api/jobs", json={**OPEN, "fileId": file["id"]}),
        await ada.post("/api/jobs", json={**OPEN, "maxItems": 5}),
        await ada.post("/api/jobs", json={**OPEN, "pipeline": "planning"}),
        await ada.post("/api/jobs", json={**OPEN, "pipeline": "regional"}),  # needs an option
        await ada.post("/api/jobs", json={**OPEN, "takeOver": True}),
        await rita.post("/api/jobs", json=OPEN),
        await upload(ada, "title\noak\n", standing="true"),
    ]
    assert [reply.status_code for reply in refused] == [422, 422, 422, 422, 403, 403, 422]
    assert (await ada.get("/api/jobs")).json()["jobs"] == []
    assert len((await ada.get("/api/files")).json()["files"]) == 1


async def test_standing_job_keeps_its_options(server: ApiServer) -> None:
    ada = await server.person("ada")
    body = {**OPEN, "pipeline": "repeated"}
    first = await ada.post("/api/jobs", json={**body, "options": {"times": 3}})
    assert first.json()["options"]["times"] == 3
    for options in ({}, {"times": 3}):
        same = await ada.post("/api/jobs", json={**body, "options": options})
        assert same.json()["id"] == first.json()["id"]
    other = await ada.post("/api/jobs", json={**body, "options": {"times": 4}})
    assert other.status_code == 409 and "different options" in other.json()["detail"]


async def test_switch_and_quota_hold_for_standing_jobs_too(
    database_url: str, tmp_path: Path
) -> None:
    async with ApiServer(database_url, tmp_path, quota_jobs="1") as server:
        ada, root = await server.person("ada"), await server.person("root", "admin")
        await root.put("/api/kill-switches/pipeline:lengths", json={"reason": "costs"})
        assert (await ada.post("/api/jobs", json=OPEN)).status_code == 503
        await root.delete("/api/kill-switches/pipeline:lengths")
        replies = await asyncio.gather(
            *(ada.post("/api/jobs", json={**OPEN, "pipeline": name})
              for name in ("lengths", "repeated", "pictures"))
        )  # fmt: skip
        assert sorted(reply.status_code for reply in replies) == [202, 409, 409]


async def test_idle_jobs_are_found_by_state(server: ApiServer) -> None:
    ada = await server.person("ada")
    await finished(server, ada, "oak")
    idle = (await ada.post("/api/jobs", json=OPEN)).json()["id"]
    busy = (await ada.post("/api/jobs", json={**OPEN, "pipeline": "repeated"})).json()["id"]
    await ada.post(f"/api/jobs/{busy}/items", json=[{"title": "elm"}])

    async def listed(states: str) -> list[int]:
        reply = await ada.get(f"/api/jobs?states={states}")
        return [job["id"] for job in reply.json()["jobs"]]

    assert await listed("idle") == [idle]
    assert await listed("RUNNING") == [busy, idle]  # which is their state
    assert await listed("IDLE,DONE") == [idle, 1]
    await server.work(busy)
    assert await listed("IDLE") == [busy, idle]
    await ada.post(f"/api/jobs/{idle}/pause")
    assert await listed("IDLE") == [busy]
    unknown = await ada.get("/api/jobs?states=SLEEPY")
    assert unknown.status_code == 422 and "IDLE" in unknown.json()["hint"]
