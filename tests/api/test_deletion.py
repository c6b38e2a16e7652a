"""Deleting over HTTP and on the pages: who may, what is asked first, and what is gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import structlog

from holdfast.features.deletion.deleter import Deleter
from holdfast.features.deletion.job_rows import JobRows
from holdfast.features.deletion.retention_rows import RetentionRows
from tests.api.server import ApiServer, ended, finished, upload
from tests.pictures import png
from tests.sources.test_image_archives import packed
from tests.store.checks import execute, fetch
from tests.store.deletion_scenarios import traces_of


async def _gone(client: httpx2.AsyncClient, path: str) -> None:
    while (await client.get(path)).status_code != 404:
        await asyncio.sleep(0.02)


async def _export(client: httpx2.AsyncClient, job_id: int) -> dict[str, Any]:
    made = (await client.post(f"/api/jobs/{job_id}/export", params={"format": "csv"})).json()
    while (export := (await client.get(f"/api/exports/{made['id']}")).json())["state"] != "DONE":
        await asyncio.sleep(0.02)
    return dict(export)


async def test_job_is_deleted_by_its_owner_with_its_exports(server: ApiServer) -> None:
    ada, ben = await server.person("ada"), await server.person("ben")
    job = await finished(server, ada, "oak", "elm", "broken")
    kept = await finished(server, ben, "ash")
    export = await _export(ada, job["id"])
    exports = server.folder / ".holdfast" / "files" / "exports"
    assert len(list(exports.iterdir())) == 1
    path = f"/api/jobs/{job['id']}"
    assert (await ben.delete(path)).status_code == 404
    reply = await ada.delete(path)
    assert reply.status_code == 202
    assert (reply.json()["state"], reply.json()["why"]["kind"]) == ("DELETING", "deleting")
    await _gone(ada, path)
    assert await traces_of(server.parts.store, job["id"]) == {}
    assert [each for each in exports.glob("*") if each.is_file()] == []
    assert (await ada.get(f"/api/exports/{export['id']}")).status_code == 404
    assert (await ada.delete(path)).status_code == 404
    assert (await ben.get(f"/api/jobs/{kept['id']}/items")).json()["items"][0]["status"] == "DONE"


async def test_no_export_is_made_of_a_job_that_goes(server: ApiServer) -> None:
    ada = await server.person("ada")
    gone = await finished(server, ada, "oak")
    await JobRows(server.parts.store.database).mark(gone["id"], "ada")
    path = f"/api/jobs/{gone['id']}/export?format=csv"
    assert (await ada.post(path)).status_code == 404
    assert await fetch(server.parts.store, "select 1 from exports") == []


async def test_export_that_is_finished_while_its_job_goes_leaves_no_file(
    server: ApiServer,
) -> None:
    ada, store = await server.person("ada"), server.parts.store
    job = await finished(server, ada, "oak")
    await _export(ada, job["id"])
    removed: list[str] = []

    async def remove(key: str) -> None:
        if not removed:  # what was listed is gone, and the next writer is done
            await execute(store, "update exports set key = 'exports/late'")
        removed.append(key)

    await Deleter(store, remove, structlog.get_logger()).begin(job["id"], "ada")
    await Deleter(store, remove, structlog.get_logger()).delete(job["id"])
    assert removed[1:] == ["exports/late"]


async def test_running_job_is_deleted_and_its_orders_are_refused(server: ApiServer) -> None:
    ada = await server.person("ada")
    made = (await upload(ada, "title\noak\nelm\n")).json()
    assert (await ada.delete(f"/api/jobs/{made['id']}")).status_code == 202
    await _gone(ada, f"/api/jobs/{made['id']}")
    await server.work(made["id"])  # a worker that knew of it finds nothing
    assert (await ada.post(f"/api/jobs/{made['id']}/pause")).status_code == 404
    again = (await upload(ada, "title\noak\nelm\n")).json()
    assert (await ended(server, ada, again["id"]))["counters"]["done"] == 2


async def test_files_and_exports_are_deleted_and_free_their_quota(server: ApiServer) -> None:
    ada, ben = await server.person("ada"), await server.person("ben")
    stored = (await ada.post("/api/files", files={"file": ("a.csv", b"title\noak\n")})).json()
    body = {"pipeline": "lengths", "fileId": stored["id"]}
    job = (await ada.post("/api/jobs", json=body)).json()
    before = (await ada.get("/api/session/usage")).json()
    path = f"/api/files/{stored['id']}"
    refused = await ada.delete(path)
    assert refused.status_code == 409 and f"job {job['id']} may still read" in refused.text
    await ended(server, ada, job["id"])
    export = await _export(ada, job["id"])
    assert (await ben.delete(path)).status_code == 404
    assert (await ben.delete(f"/api/exports/{export['id']}")).status_code == 404
    assert (await ada.delete(path)).status_code == 204
    assert (await ada.delete(f"/api/exports/{export['id']}")).status_code == 204
    files = server.folder / ".holdfast" / "files"
    assert [each for each in files.rglob("*") if each.is_file()] == []
    after = (await ada.get("/api/session/usage")).json()
    assert after["used"]["files"] == before["used"]["files"] - 1
    assert after["used"]["bytes"] == 0
    assert (await ada.delete(path)).status_code == 404


async def test_file_is_gone_before_a_job_is_made_of_it_or_stays_for_the_job(
    server: ApiServer,
) -> None:
    ada = await server.person("ada")
    for _ in range(5):
        file = {"file": ("a.csv", b"title\noak\n")}
        file_id = (await ada.post("/api/files", files=file)).json()["id"]
        made, gone = await asyncio.gather(
            ada.post("/api/jobs", json={"pipeline": "lengths", "fileId": file_id}),
            ada.delete(f"/api/files/{file_id}"),
        )
        assert (made.status_code, gone.status_code) in ((202, 409), (404, 204))
        if made.status_code == 202:
            await ended(server, ada, made.json()["id"])


async def test_images_and_zips_stay_while_an_unfinished_job_may_read_them(
    server: ApiServer, tmp_path: Path
) -> None:
    ada, amy = await server.person("ada"), await server.person("amy", "admin")
    archive = packed(tmp_path / "b.zip", {"c.png": png(6, 6)})
    contents = {"a.png": png(), "other.png": png(5, 5), "b.zip": archive.read_bytes()}
    ids = [
        (await ada.post("/api/files", files={"file": each})).json()["id"]
        for each in contents.items()
    ]
    jobs = [
        (await client.post("/api/jobs", json={"pipeline": "pictures", "fileId": ids[place]})).json()
        for client, place in ((ada, 0), (amy, 2))
    ]
    replies = [await ada.delete(f"/api/files/{file_id}") for file_id in ids]
    assert [reply.status_code for reply in replies] == [409, 204, 409]
    assert f"job {jobs[1]['id']} may still read" in replies[2].text
    for job in jobs:
        assert (await ended(server, amy, job["id"]))["counters"]["done"] == 1
    replies = [await ada.delete(f"/api/files/{file_id}") for file_id in ids]
    assert [reply.status_code for reply in replies] == [204, 404, 204]


async def test_retention_spares_a_file_of_which_a_job_was_made_since(server: ApiServer) -> None:
    ada, store = await server.person("ada"), server.parts.store
    file = {"file": ("a.csv", b"title\noak\n")}
    file_id = (await ada.post("/api/files", files=file)).json()["id"]
    old = await RetentionRows(store.database).old_files(0.0, 10)
    assert [each["id"] for each in old] == [file_id]
    made = await ada.post("/api/jobs", json={"pipeline": "lengths", "fileId": file_id})
    assert not await RetentionRows(store.database).mark_old_file(old[0])
    await ended(server, ada, made.json()["id"])


async def test_reader_deletes_nothing_of_others(server: ApiServer) -> None:
    ada, reader = await server.person("ada"), await server.person("rita", "reader")
    job = await finished(server, ada, "oak")
    assert (await reader.delete(f"/api/jobs/{job['id']}")).status_code == 403
    export = await _export(ada, job["id"])
    assert (await reader.delete(f"/api/exports/{export['id']}")).status_code == 404
    assert (await reader.get(f"/jobs/{job['id']}/delete")).status_code == 403


async def test_account_goes_with_everything_of_the_person(server: ApiServer) -> None:
    ada, ben = await server.person("ada"), await server.person("ben")
    job, kept = await finished(server, ada, "oak"), await finished(server, ben, "ash")
    await _export(ada, job["id"])
    token = await server.person("amy", "admin")
    adapter = {"kind": "folder", "address": "/nowhere", "pipeline": "lengths", "owner": "ada"}
    assert (await token.put("/api/ingestion/in", json=adapter)).status_code == 204
    assert (await token.delete("/api/users/ada")).status_code == 403  # needs a session
    root = await server.signed_in("root", "admin")
    assert (await root.delete("/api/users/root")).status_code == 422
    assert (await ben.delete("/api/users/ada")).status_code == 403
    reply = await root.delete("/api/users/ada")
    assert (reply.status_code, reply.json()["state"]) == (202, "DELETING")
    assert (await ada.get("/api/jobs")).status_code == 401
    while any(user["name"] == "ada" for user in (await root.get("/api/users")).json()["users"]):
        await asyncio.sleep(0.02)
    store = server.parts.store
    for table, column in (
        ("jobs", "owner_id"), ("files", "owner_id"), ("exports", "owner_id"),
        ("tokens", "user_name"), ("operations", "owner_id"), ("adapters", "owner_id"),
    ):  # fmt: skip
        assert await fetch(store, f"select 1 from {table} where {column} = 'ada'") == [], table
    assert (await ben.get(f"/api/jobs/{kept['id']}")).json()["state"] == "DONE"
    acts = await fetch(store, "select action from audit where subject = 'ada' order by id")
    assert [act[0] for act in acts][-2:] == ["user.deleting", "user.deleted"]


async def test_upload_that_outlasts_its_account_leaves_nothing(server: ApiServer) -> None:
    ada, root = await server.person("ada"), await server.signed_in("root", "admin")
    deleted, begun = asyncio.Event(), asyncio.Semaphore(0)

    async def form() -> AsyncIterator[bytes]:
        part = '--x\r\nContent-Disposition: form-data; name="{}"\r\n\r\n'
        file = part.format('file"; filename="a.csv')
        yield f"{part.format('pipeline')}lengths\r\n{file}title\n".encode()
        begun.release()
        await deleted.wait()
        yield b"oak\n\r\n--x--\r\n"

    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    sending = [
        asyncio.create_task(ada.post(path, content=form(), headers=kind))
        for path in ("/api/jobs", "/api/files")
    ]
    for _ in sending:
        await begun.acquire()
    while len(list((server.folder / ".holdfast").rglob("*/file"))) < len(sending):
        await asyncio.sleep(0.02)
    assert (await root.delete("/api/users/ada")).status_code == 202
    while any(user["name"] == "ada" for user in (await root.get("/api/users")).json()["users"]):
        await asyncio.sleep(0.02)
    deleted.set()
    replies = await asyncio.gather(*sending)
    assert [reply.status_code for reply in replies] == [403, 403], [each.text for each in replies]
    for table in ("jobs", "files"):
        assert await fetch(server.parts.store, f"select 1 from {table}") == [], table
    assert await server.stored("uploads/") == []


async def test_pages_ask_before_they_delete(server: ApiServer) -> None:
    ada = await server.signed_in("ada")
    token = {"csrf": ada.headers["X-CSRF-Token"]}
    job = await finished(server, ada, "oak")
    dialog = await ada.get(f"/jobs/{job['id']}/delete")
    assert dialog.status_code == 200 and "Type the job" in dialog.text
    wrong = await ada.post(f"/jobs/{job['id']}/delete", data={"name": "another", **token})
    assert wrong.status_code == 422 and "not the name of the job" in wrong.text
    export = await _export(ada, job["id"])
    assert "Delete export" in (await ada.get(f"/exports/{export['id']}/delete")).text
    gone = await ada.post(f"/exports/{export['id']}/delete", data=token)
    assert gone.status_code in (200, 303)
    assert (await ada.get(f"/api/exports/{export['id']}")).status_code == 404
    file_id = (await ada.get("/api/files")).json()["files"][0]["id"]
    assert "Delete file" in (await ada.get(f"/files/{file_id}/delete")).text
    await ada.post(f"/files/{file_id}/delete", data=token)
    assert (await ada.get("/api/files")).json()["files"] == []
    right = await ada.post(f"/jobs/{job['id']}/delete", data={"name": job["name"], **token})
    assert right.status_code in (200, 303)
    await _gone(ada, f"/api/jobs/{job['id']}")
