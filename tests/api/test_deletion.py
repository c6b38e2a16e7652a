"""Deleting over HTTP and on the pages: who may, what is asked first, and what is gone."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2

from tests.api.server import ApiServer, ended, finished, upload
from tests.store.checks import fetch
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
