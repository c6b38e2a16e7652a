"""Quotas: how much one owner may have, and the error beyond it (V9)."""

from __future__ import annotations

import asyncio
from pathlib import Path

from holdfast.features.accounts.quotas import Amounts
from holdfast.kernel import NewJob
from tests.api.server import ApiServer, finished, taken_in, upload

ROWS = b"title\noak\n"


async def test_each_amount_has_a_limit(database_url: str, tmp_path: Path) -> None:
    limits = Amounts(files=2, exports=2, jobs=2, tokens=2)
    async with ApiServer(database_url, tmp_path, quotas=limits) as server:
        ada, rita = await server.person("ada"), await server.person("rita", "reader")
        job = (await finished(server, ada, "oak"))["id"]

        file = {"file": ("more.csv", ROWS)}
        assert (await ada.post("/api/files", files=file)).status_code == 201
        refused = await ada.post("/api/files", files=file)
        assert refused.status_code == 409 and "limit per owner is 2" in refused.json()["detail"]

        path = f"/api/jobs/{job}/export?format=csv"
        for client in (ada, rita):
            replies = await asyncio.gather(*(client.post(path) for _ in range(6)))
            statuses = sorted(reply.status_code for reply in replies)
            assert statuses == [202, 202, 409, 409, 409, 409], "exactly, however they come"

        assert (await ada.post("/api/tokens", json={"name": "a"})).status_code == 201
        assert (await ada.post("/api/tokens", json={"name": "b"})).status_code == 409

        again = {"pipeline": "lengths", "fileId": 1}
        made = [(await ada.post("/api/jobs", json=again)).status_code for _ in range(3)]
        assert made == [202, 202, 409]

        usage = (await ada.get("/api/session/usage")).json()
        assert usage["used"]["files"] == usage["limits"]["files"] == 2
        assert usage["used"]["exports"] == 2 and usage["used"]["jobs"] == 2
        page = (await ada.get("/account")).text
        assert "Limit" in page


async def test_job_takes_in_no_more_items_than_its_owner_may_have(
    database_url: str, tmp_path: Path
) -> None:
    async with ApiServer(database_url, tmp_path, quota_items="3") as server:
        ada = await server.person("ada")
        made = await upload(ada, "title\n" + "".join(f"t{number}\n" for number in range(5)))
        await taken_in(ada, made.json()["id"])
        job = (await ada.get(f"/api/jobs/{made.json()['id']}")).json()
        assert (job["counters"]["accepted"], job["maxItems"]) == (3, 3)
        assert "limit of 3 items is reached" in (await ada.get(f"/jobs/{job['id']}")).text
        refused = await upload(ada, "title\noak\n")
        assert refused.status_code == 409 and "HOLDFAST_QUOTA_ITEMS" in refused.text
        assert (await ada.get("/api/session/usage")).json()["used"]["items"] == 3
        await server.work(job["id"])
        assert (await upload(ada, "title\noak\n")).status_code == 202


async def test_resumed_and_forced_jobs_keep_to_the_quotas(
    database_url: str, tmp_path: Path
) -> None:
    async with ApiServer(database_url, tmp_path, quota_items="3", quota_jobs="1") as server:
        ada = await server.person("ada")
        rows = "title\n" + "".join(f"t{number}\n" for number in range(9))
        job = await taken_in(ada, (await upload(ada, rows)).json()["id"])
        path = f"/api/jobs/{job['id']}/resume"
        refused = await ada.post(path, json={"maxItems": 1000})
        assert refused.status_code == 409 and "there are 3 open items" in refused.text
        await server.work(job["id"])
        assert (await ada.post(path, json={"maxItems": 1000})).json()["maxItems"] == 6
        assert (await taken_in(ada, job["id"]))["counters"]["accepted"] == 6
        await server.work(job["id"])

        shelves = (await ada.post("/api/jobs", json={"pipeline": "shelves"})).json()
        refused = await ada.post(path, json={"maxItems": 1000})
        assert refused.status_code == 409 and "2 unfinished jobs" in refused.text
        await server.work(shelves["id"])
        streams = [
            stream["id"]
            for stream in (await ada.get("/api/streams?pipeline=shelves")).json()["streams"]
        ]
        replies = [await ada.post(f"/api/streams/{each}/force-full") for each in streams]
        assert [reply.status_code for reply in replies] == [202, 409]
        assert replies[0].json()["job"]["maxItems"] == 3


async def test_standing_job_is_not_resumed_with_a_maximum(server: ApiServer) -> None:
    ada = await server.person("ada")
    job = (await ada.post("/api/jobs", json={"pipeline": "lengths", "standing": True})).json()
    await ada.post(f"/api/jobs/{job['id']}/pause")
    refused = await ada.post(f"/api/jobs/{job['id']}/resume", json={"maxItems": 5})
    assert refused.status_code == 422 and "no maximum" in refused.text
    assert (await ada.post(f"/api/jobs/{job['id']}/resume")).json()["state"] == "RUNNING"


async def test_records_for_a_standing_job_count_exactly_however_they_come(
    database_url: str, tmp_path: Path
) -> None:
    async with ApiServer(database_url, tmp_path, quota_items="3") as server:
        ada = await server.person("ada")
        new = NewJob("lengths", "lengths", [], owner_id="ada", standing=True)
        job_id, _ = await server.parts.store.jobs.open(new, "ada")
        path, row = f"/api/jobs/{job_id}/items", {"title": "oak"}
        replies = await asyncio.gather(*(ada.post(path, json=[row]) for _ in range(6)))
        assert sorted(reply.status_code for reply in replies) == [201] * 3 + [409] * 3
        refused = await ada.post(path, json=[row])
        assert "HOLDFAST_QUOTA_ITEMS" in refused.text
        assert (await ada.get("/api/session/usage")).json()["used"]["items"] == 3
        await server.work(job_id)
        assert (await ada.post(path, json=[row] * 3)).status_code == 201


async def test_bytes_have_a_limit_and_nothing_is_left_behind(
    database_url: str, tmp_path: Path
) -> None:
    async with ApiServer(database_url, tmp_path, quota_bytes="15") as server:
        ada = await server.person("ada")
        for name, status in (("a.csv", 201), ("b.csv", 409)):
            reply = await ada.post("/api/files", files={"file": (name, ROWS)})
            assert reply.status_code == status, reply.text
        assert len(await server.stored("uploads/")) == 1


async def test_jobs_and_bulk_exports_are_counted_exactly_however_they_come(
    database_url: str, tmp_path: Path
) -> None:
    limits = Amounts(exports=4, jobs=3)
    async with ApiServer(database_url, tmp_path, quotas=limits) as server:
        ada = await server.person("ada")
        await ada.post("/api/files", files={"file": ("rows.csv", ROWS)})
        request = {"pipeline": "lengths", "fileId": 1}
        made = await asyncio.gather(*(ada.post("/api/jobs", json=request) for _ in range(10)))
        assert sorted(reply.status_code for reply in made) == [202] * 3 + [409] * 7

        ids = [reply.json()["id"] for reply in made if reply.status_code == 202]
        export = {"kind": "export", "filter": {"jobIds": ids}}
        await asyncio.gather(*(ada.post("/api/operations", json=export) for _ in range(3)))
        while True:
            operations = (await ada.get("/api/operations")).json()["operations"]
            if {operation["state"] for operation in operations} == {"DONE"}:
                break
            await asyncio.sleep(0.05)
        assert sum(len(operation["result"]) for operation in operations) == 4
