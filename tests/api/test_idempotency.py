"""A request that is sent again with its key, or another with the same key."""

from __future__ import annotations

import asyncio
import json

import pytest

from holdfast.errors import UnfitState
from holdfast.kernel import NewJob
from holdfast.kernel.arrivals.enqueue import Addition
from holdfast.kernel.arrivals.idempotency import RequestKey
from holdfast_client.records import new_item
from tests.api.server import ApiServer, finished
from tests.store.checks import execute

KEY = {"Idempotency-Key": "one"}


async def test_same_key_stores_one_file_and_makes_one_export(server: ApiServer) -> None:
    ada = await server.person("ada")
    job = await finished(server, ada, "oak")
    for path, asked in (
        ("/api/files", {"files": {"file": ("a.csv", b"title\noak\n")}}),
        (f"/api/jobs/{job['id']}/export?format=csv", {}),
    ):
        headers = {"Idempotency-Key": path[:30]}
        first = await ada.post(path, headers=headers, **asked)
        again = await ada.post(path, headers=headers, **asked)
        assert (again.status_code, again.json()) == (first.status_code, first.json())
        assert again.headers["idempotency-replayed"] == "true"
    assert len((await ada.get("/api/exports")).json()["exports"]) == 1


async def test_key_of_another_file_of_the_same_length_is_refused(server: ApiServer) -> None:
    ada = await server.person("ada")
    first = await ada.post("/api/files", files={"file": ("a.csv", b"title\noak\n")}, headers=KEY)
    other = await ada.post("/api/files", files={"file": ("a.csv", b"title\nelm\n")}, headers=KEY)
    assert (first.status_code, other.status_code) == (201, 422)
    assert "another request" in other.json()["detail"]


async def test_key_of_a_job_over_another_file_of_the_same_length_is_refused(
    server: ApiServer,
) -> None:
    ada = await server.person("ada")
    statuses = [
        (
            await ada.post(
                "/api/jobs", data={"pipeline": "lengths"}, headers=KEY,
                files={"file": ("a.csv", f"title\n{title}\n".encode())},
            )
        ).status_code
        for title in ("oak", "oak", "elm")
    ]  # fmt: skip
    assert statuses == [202, 202, 422]
    assert len((await ada.get("/api/jobs")).json()["jobs"]) == 1


async def test_request_of_a_killed_server_is_taken_over_and_no_other(server: ApiServer) -> None:
    table, store = server.parts.store.taken_keys, server.parts.store
    for name in ("alive", "killed"):
        await store.workers.add_worker(name, "host", 1, [])
        assert await table.begin_request("ada", name, "same", name) is None
    await store.workers.lose("killed", gone=True)
    assert await table.begin_request("ada", "alive", "same", "next") is not None
    assert await table.begin_request("ada", "killed", "same", "next") is None


async def test_frozen_server_that_wakes_up_makes_nothing_a_second_time(server: ApiServer) -> None:
    table, store = server.parts.store.taken_keys, server.parts.store
    job_id, _ = await store.jobs.open(NewJob("events", "events", [], standing=True), "ada")
    addition, key = Addition("events", "", [new_item({"n": 1})]), RequestKey("ada", "one")
    for _ in range(2):
        assert await table.begin_request("ada", "one", "same", "api") is None
        await execute(store, "update taken_keys set worker = null")
    await store.additions.enqueue(addition, key)
    with pytest.raises(UnfitState, match="just been answered"):
        await store.additions.enqueue(addition, key)
    await table.drop_request("ada", "one")
    again = await table.begin_request("ada", "one", "same", "api")
    assert again is not None and again.made == job_id
    assert (await store.reads.counters(job_id)).accepted == 1


async def test_another_request_does_not_take_over_a_key(server: ApiServer) -> None:
    """The server of the first may wake up: what it makes would be the response to the other."""
    table, store = server.parts.store.taken_keys, server.parts.store
    assert await table.begin_request("ada", "one", "first", "api") is None
    await execute(store, "update taken_keys set worker = null")
    before = await table.begin_request("ada", "one", "other", "api")
    assert before is not None and before.fingerprint == "first"


async def test_of_equal_keys_at_once_one_makes_a_job(server: ApiServer) -> None:
    ada = await server.person("ada")
    file = (await ada.post("/api/files", files={"file": ("a.csv", b"title\noak\n")})).json()
    body = {"pipeline": "lengths", "fileId": file["id"]}
    replies = await asyncio.gather(
        *(ada.post("/api/jobs", json=body, headers=KEY) for _ in range(10))
    )
    assert {reply.status_code for reply in replies} <= {202, 409}
    made = {json.loads(reply.content)["id"] for reply in replies if reply.status_code == 202}
    assert len(made) == len((await ada.get("/api/jobs")).json()["jobs"]) == 1
