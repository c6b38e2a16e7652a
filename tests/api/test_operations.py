"""Operations on everything that matches: previewed, exact, stopped and continued."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2

from holdfast.features.bulk.operation_runner import OperationRunner
from holdfast.features.bulk.operations import Chunk, NewOperation
from holdfast.features.console import open_console
from holdfast.kernel.database.chunks import FinishedItems
from holdfast.kernel.pace.retry import RetryPolicy
from holdfast.model import ItemStatus
from holdfast.observe.log import get_logger
from tests.api.server import ApiServer, ended, finished, taken_in, upload
from tests.store.checks import assert_sound


async def _carried_out(client: httpx2.AsyncClient, body: dict[str, Any]) -> dict[str, Any]:
    reply = await client.post("/api/operations", json=body)
    assert reply.status_code == 202, reply.text
    return await _ended(client, reply.json()["id"])


async def _ended(client: httpx2.AsyncClient, operation_id: int) -> dict[str, Any]:
    path = f"/api/operations/{operation_id}"
    while True:
        operation: dict[str, Any] = (await client.get(path)).json()
        if operation["state"] not in ("QUEUED", "RUNNING"):
            return operation
        await asyncio.sleep(0.05)


async def test_reprocess_leaves_exhausted_items_unless_attempts_are_reset(
    server: ApiServer,
) -> None:
    ada = await server.person("ada")
    job = await finished(server, ada, "chair", "broken", "missing", "broken")
    path = f"/api/jobs/{job['id']}/reprocess"
    begun = (await ada.post(path, json={})).json()["operation"]
    plain = await _ended(ada, begun["id"])
    assert (plain["doneCount"], plain["leftCount"], plain["expectedCount"]) == (0, 3, 3)
    begun = (await ada.post(path, json={"resetAttempts": True})).json()["operation"]
    reset = await _ended(ada, begun["id"])
    assert (reset["state"], reset["doneCount"], reset["leftCount"]) == ("DONE", 3, 0)
    counts = (await ada.get(f"/api/jobs/{job['id']}")).json()["counters"]
    assert (counts["done"], counts["open"]) == (1, 3)
    await assert_sound(server.parts.store, job["id"])
    await ended(server, ada, job["id"])


async def test_preview_counts_what_the_operation_touches(server: ApiServer) -> None:
    ada = await server.person("ada")
    job = await finished(server, ada, "chair", "broken", "missing", "broken")
    filter = {"jobIds": [job["id"]], "statuses": ["ERROR"], "code": "UNKNOWN_ERROR"}
    body = {"kind": "reprocess", "filter": filter, "resetAttempts": True}
    preview = (await ada.post("/api/operations/preview", json=body)).json()
    assert preview == {"jobs": 1, "count": 2, "exact": True, "looked": None}
    operation = await _carried_out(ada, body)
    assert operation["doneCount"] == 2
    filter["code"] = "TIMEOUT"
    assert (await ada.post("/api/operations/preview", json=body)).json()["count"] == 0


async def test_reprocess_finds_items_by_what_a_column_holds(server: ApiServer) -> None:
    ada = await server.person("ada")
    job = await finished(server, ada, *["chair", "table"] * 700)
    filter = {"jobIds": [job["id"]], "statuses": ["DONE"], "values": ["title:CH*"]}
    body = {"kind": "reprocess", "filter": filter}
    preview = (await ada.post("/api/operations/preview", json=body)).json()
    assert preview == {"jobs": 1, "count": 700, "exact": True, "looked": 1400}
    operation = await _carried_out(ada, body)
    assert (operation["doneCount"], operation["leftCount"]) == (700, 0)
    await assert_sound(server.parts.store, job["id"])
    opened = (
        await ada.get(f"/api/jobs/{job['id']}/items?statuses=PENDING&value=title:table")
    ).json()
    assert opened["items"] == []
    await ended(server, ada, job["id"])
    unknown = {**filter, "values": ["colour:red"]}
    reply = await ada.post("/api/operations", json={"kind": "reprocess", "filter": unknown})
    assert reply.status_code == 422 and "colour" in reply.text


async def test_skip_finds_items_by_what_a_column_holds(server: ApiServer) -> None:
    ada = await server.person("ada")
    job_id = (await upload(ada, "title\n" + "chair\ntable\n" * 1500)).json()["id"]
    await taken_in(ada, job_id)
    filter = {"jobIds": [job_id], "statuses": ["PENDING"], "values": ["title:chair"]}
    operation = await _carried_out(ada, {"kind": "skip", "filter": filter})
    assert operation["doneCount"] == 1500
    await assert_sound(server.parts.store, job_id)
    job = await ended(server, ada, job_id)
    assert (job["counters"]["skipped"], job["counters"]["accepted"]) == (1500, 3000)


async def test_skip_ends_what_is_open_and_finishes_the_job(server: ApiServer) -> None:
    ada = await server.person("ada")
    job_id = (await upload(ada, "title\n" + "x\n" * 5000)).json()["id"]
    await taken_in(ada, job_id)
    body = {
        "kind": "skip",
        "filter": {"jobIds": [job_id], "statuses": ["PENDING"]},
        "reason": "not needed",
    }
    operation = await _carried_out(ada, body)
    assert (operation["state"], operation["doneCount"]) == ("DONE", 5000)
    job = (await ada.get(f"/api/jobs/{job_id}")).json()
    assert (job["state"], job["counters"]["skipped"]) == ("DONE", 5000)
    await assert_sound(server.parts.store, job_id)
    item = (await ada.get(f"/api/jobs/{job_id}/items/17")).json()
    assert (item["status"], item["errorMessage"]) == ("SKIPPED", "not needed")


async def test_skip_leaves_alone_what_a_worker_holds(server: ApiServer) -> None:
    ada = await server.person("ada")
    job_id = (await upload(ada, "title\n" + "x\n" * 50)).json()["id"]
    await taken_in(ada, job_id)
    await server.parts.store.leases.claim(job_id, "one", 10, 10**9)
    filter = {"jobIds": [job_id], "statuses": ["PENDING"]}
    operation = await _carried_out(ada, {"kind": "skip", "filter": filter})
    assert operation["doneCount"] == 40
    await assert_sound(server.parts.store, job_id)
    assert (await ada.get(f"/api/jobs/{job_id}")).json()["state"] == "RUNNING"


async def test_cancel_and_export_of_several_jobs(server: ApiServer) -> None:
    ada = await server.person("ada")
    ids = [(await upload(ada, "title\nx\n")).json()["id"] for _ in range(3)]
    for job_id in ids:
        await taken_in(ada, job_id)
    exported = await _carried_out(
        ada, {"kind": "export", "filter": {"pipeline": "lengths"}, "format": "jsonl"}
    )
    assert (exported["doneCount"], len(exported["result"])) == (3, 3)
    narrow = {"pipeline": "lengths", "values": ["title:y"]}
    none = await _carried_out(ada, {"kind": "export", "filter": narrow})
    assert (await ada.get(f"/api/exports/{none['result'][0]}")).json()["narrowed"] == {
        "values": [["title", "y"]]
    }
    filter = {"states": ["RUNNING"]}
    cancelled = await _carried_out(ada, {"kind": "cancel", "filter": filter})
    assert cancelled["doneCount"] == 3
    jobs = (await ada.get("/api/jobs")).json()["jobs"]
    assert {job["state"] for job in jobs} == {"CANCELLED"}


UNFITTING: list[dict[str, Any]] = [
    {"kind": "reprocess", "filter": {}},
    {"kind": "cancel", "filter": {}},
    {"kind": "reprocess", "filter": {"pipeline": "lengths"}},
    {"kind": "reprocess", "filter": {"pipeline": "lengths", "statuses": ["PENDING"]}},
    {"kind": "skip", "filter": {"pipeline": "lengths", "statuses": ["DONE"]}},
    {"kind": "delete", "filter": {"pipeline": "lengths"}},
    {"kind": "export", "filter": {"pipeline": "lengths", "values": ["colour:red"]}},
    {"kind": "cancel", "filter": {"pipeline": "lengths", "statuses": ["ERROR"]}},
]


async def test_empty_and_unfitting_filters_are_refused(server: ApiServer) -> None:
    ada = await server.person("ada")
    await finished(server, ada, "chair")
    for body in UNFITTING:
        for path in ("/api/operations", "/api/operations/preview"):
            assert (await ada.post(path, json=body)).status_code == 422, body


async def test_cancelled_operation_stops_and_keeps_what_it_did(server: ApiServer) -> None:
    ada = await server.person("ada")
    job_id = (await upload(ada, "title\n" + "x\n" * 5000)).json()["id"]
    await taken_in(ada, job_id)
    filter = {"jobIds": [job_id], "statuses": ["PENDING"]}
    body = {"kind": "skip", "filter": filter, "itemsPerSecond": 500}
    operation_id = (await ada.post("/api/operations", json=body)).json()["id"]
    path = f"/api/operations/{operation_id}"
    while (await ada.get(path)).json()["doneCount"] == 0:
        await asyncio.sleep(0.02)
    assert (await ada.post(f"{path}/cancel")).json()["state"] == "CANCELLED"
    assert (await ada.post(f"{path}/cancel")).status_code == 409
    done = (await ada.get(path)).json()["doneCount"]
    counts = (await ada.get(f"/api/jobs/{job_id}")).json()["counters"]
    assert counts["skipped"] == done < 5000
    await assert_sound(server.parts.store, job_id)


async def test_operation_of_a_process_that_died_is_gone_on_with_exactly(
    server: ApiServer,
) -> None:
    """The first holder does some steps and is gone; the second does the rest, nothing twice."""
    ada = await server.person("ada")
    titles = ["missing"] * 1200
    job = await finished(server, ada, *titles)
    store = server.parts.store
    target = {
        "statuses": ["NOT_FOUND"], "code": None, "since": None, "until": None,
        "reset_attempts": True, "include_permanent": False, "items_per_second": None,
    }  # fmt: skip
    new = NewOperation("ada", "reprocess", target, [job["id"]], 1200)
    operation_id = await open_console(store).operations.add(new)
    first = await open_console(store).operations.lease(operation_id, "first")
    if first is not None:
        items = FinishedItems(ItemStatus.NOT_FOUND, until=first.operation.begun_at)
        chunk = Chunk(items, {"job": 0, "part": 0}, {"job": 0, "part": 1})
        await open_console(store).operations.reprocess(first, job["id"], chunk, lambda _: True)
    await store.workers.stop_worker("first")
    log = get_logger()
    second = OperationRunner(
        server.parts.console, server.parts.pipelines, RetryPolicy(), lambda: "second", log
    )
    while (await ada.get(f"/api/operations/{operation_id}")).json()["state"] != "DONE":
        await second.look()
        await asyncio.sleep(0.05)
    assert (await open_console(store).operations.operation(operation_id)).done_count == 1200
    assert (await store.reads.counters(job["id"])).open == 1200
    await assert_sound(store, job["id"])


async def test_slow_operation_does_not_block_others(server: ApiServer) -> None:
    ada, ben = await server.person("ada"), await server.person("ben")
    theirs = await finished(server, ada, *["broken"] * 3)
    mine = await finished(server, ben, "broken")
    body = {"kind": "reprocess", "filter": {"statuses": ["ERROR"]}, "includePermanent": True}
    body |= {"resetAttempts": True}
    slow = {**body, "filter": {"statuses": ["ERROR"], "jobIds": [theirs["id"]]}}
    made = await ada.post("/api/operations", json={**slow, "itemsPerSecond": 0.001})
    path = f"/api/operations/{made.json()['id']}"
    while (await ada.get(path)).json()["doneCount"] == 0:
        await asyncio.sleep(0.05)
    quick = {**body, "filter": {"statuses": ["ERROR"], "jobIds": [mine["id"]]}}
    begun = (await ben.post("/api/operations", json=quick)).json()
    while begun["state"] in ("QUEUED", "RUNNING"):
        await asyncio.sleep(0.05)
        begun = (await ben.get(f"/api/operations/{begun['id']}")).json()
    assert (begun["state"], (await ada.get(path)).json()["state"]) == ("DONE", "RUNNING")
