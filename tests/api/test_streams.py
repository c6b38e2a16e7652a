"""Streams over HTTP: continue one that stopped, read one again from the beginning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.api.server import BROKEN_SHELVES, ApiServer, ended, upload


@pytest.fixture(autouse=True)
def whole_shelves() -> Iterator[None]:
    yield
    BROKEN_SHELVES.clear()


async def _streams(client: httpx2.AsyncClient) -> dict[str, dict[str, Any]]:
    found = (await client.get("/api/streams")).json()["streams"]
    return {each["source"]: each for each in found}


async def _walked(server: ApiServer, client: httpx2.AsyncClient) -> dict[str, Any]:
    made = await client.post("/api/jobs", json={"pipeline": "shelves"})
    return await _worked(server, client, made.json()["id"])


async def _worked(server: ApiServer, client: httpx2.AsyncClient, job_id: int) -> dict[str, Any]:
    await server.work(job_id)
    return (await client.get(f"/api/jobs/{job_id}")).json()  # type: ignore[no-any-return]


async def test_stream_that_failed_continues(server: ApiServer) -> None:
    ada = await server.person("ada")
    BROKEN_SHELVES.add("right")
    job = await _walked(server, ada)
    assert job["state"] == "FAILED"
    failed = (await _streams(ada))["right"]
    assert (failed["state"], failed["error"]) == ("FAILED", "ACCESS_DENIED: the shelf is locked")
    BROKEN_SHELVES.clear()
    assert (await ada.post(f"/api/streams/{failed['id']}/retry")).status_code == 200
    job = await _worked(server, ada, job["id"])
    assert (job["state"], job["counters"]["done"]) == ("DONE", 6)


async def test_forced_stream_is_read_again_in_its_own_job(server: ApiServer) -> None:
    ada = await server.person("ada")
    await _walked(server, ada)
    before = await _streams(ada)
    reply = await ada.post(f"/api/streams/{before['left']['id']}/force-full")
    assert reply.status_code == 202, reply.text
    job = await _worked(server, ada, reply.json()["job"]["id"])
    assert (job["name"], job["counters"]["done"]) == ("shelves left", 3)
    after = await _streams(ada)
    assert after["left"]["generation"] == before["left"]["generation"] + 1
    assert after["left"]["jobId"] == job["id"]
    assert after["right"] == before["right"]
    detail = (await ada.get(f"/api/streams/{after['left']['id']}")).json()
    assert detail["stream"] == after["left"]
    slices = [(each["jobId"], each["generation"], each["ended"]) for each in detail["slices"]]
    generations = [after["left"]["generation"], before["left"]["generation"]]
    jobs = [job["id"], before["left"]["jobId"]]
    assert slices == [(*each, "complete") for each in zip(jobs, generations, strict=True)]


async def test_stream_that_is_walked_now_is_not_forced(server: ApiServer) -> None:
    ada = await server.person("ada")
    await ada.post("/api/jobs", json={"pipeline": "shelves"})
    left = (await _streams(ada))["left"]
    reply = await ada.post(f"/api/streams/{left['id']}/force-full")
    assert reply.status_code == 409 and reply.json()["hint"]


async def test_file_is_not_forced(server: ApiServer) -> None:
    ada = await server.person("ada")
    job_id = (await upload(ada, "title\nchair\n")).json()["id"]
    await ended(server, ada, job_id)
    stream = (await _streams(ada))[f"upload-{job_id}"]
    reply = await ada.post(f"/api/streams/{stream['id']}/force-full")
    assert reply.status_code == 409 and "file" in reply.json()["detail"]


async def test_live_workers_are_listed(server: ApiServer) -> None:
    ada = await server.person("ada")
    await server.parts.store.workers.add_worker("host-1", "host", 7, ["lengths"], machine="other")
    workers = (await ada.get("/api/workers")).json()["workers"]
    assert [
        (worker["name"], worker["host"], worker["pid"]) for worker in workers if worker["pid"] == 7
    ] == [("host-1", "host", 7)]
    assert (await ada.get("/api/overview")).json()["workers"] >= 1
