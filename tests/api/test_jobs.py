"""Jobs over HTTP: made of uploads, stored files and the server's files; ordered about."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.server.middleware import MAX_BODY_BYTES
from tests.api.server import ApiServer, ended, finished, taken_in, upload

ROWS = "title\nchair\nmissing\nbroken\n"


async def test_upload_becomes_a_job_whose_rows_are_taken_in_and_worked(server: ApiServer) -> None:
    ada = await server.person("ada")
    made = await upload(ada, ROWS, "products.csv")
    assert made.status_code == 202
    job = made.json()
    assert (job["name"], job["ownerId"], job["ip"]) == ("products.csv", "ada", "127.0.0.1")
    job = await ended(server, ada, job["id"])
    counts = job["counters"]
    assert (counts["accepted"], counts["done"], counts["notFound"], counts["error"]) == (3, 1, 1, 1)
    assert job["heartbeatAt"] and job["fileId"]


async def test_stored_file_is_previewed_and_used(server: ApiServer) -> None:
    ada = await server.person("ada")
    text = "title;price\nchair;1\nstool;2\n"
    stored = await ada.post("/api/files", files={"file": ("../../etc/list.csv", text.encode())})
    assert stored.status_code == 201
    file = stored.json()
    assert file["name"] == "list.csv"
    assert file["detected"]["delimiter"] == ";"
    assert file["rows"] == [{"title": "chair", "price": "1"}, {"title": "stool", "price": "2"}]
    made = await ada.post("/api/jobs", json={"pipeline": "lengths", "fileId": file["id"]})
    assert made.status_code == 202
    assert (await ended(server, ada, made.json()["id"]))["counters"]["done"] == 2


async def test_servers_file_is_taken_only_under_a_root(database_url: str, tmp_path: Path) -> None:
    inside, outside = tmp_path / "open", tmp_path / "closed"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "rows.csv").write_text("title\nchair\n")
    (inside / "link.csv").symlink_to(outside / "rows.csv")
    async with ApiServer(database_url, tmp_path, file_roots=str(inside)) as server:
        ada = await server.person("ada")
        refused = (
            str(outside / "rows.csv"), "../closed/rows.csv", "link.csv", "/etc/passwd", "none.csv",
            "rows.csv\0",
        )  # fmt: skip
        for path in refused:
            reply = await ada.post("/api/jobs", json={"pipeline": "lengths", "path": path})
            assert reply.status_code in (403, 422), path
        made = await ada.post("/api/jobs", json={"pipeline": "lengths", "path": "rows.csv"})
        assert made.status_code == 202
        await ended(server, ada, made.json()["id"])
        assert (inside / "rows.csv").exists()


NO_TABLES = [
    ("empty.csv", b"", "empty"),
    ("header.csv", b"title\n", "no rows"),
    ("photo.csv", b"\x89PNG\r\n\x1a\n" + b"\0" * 100, "image"),
    ("book.xlsx", b"PK\x03\x04" + b"\0" * 100, ""),
    ("paper.csv", b"%PDF-1.7 rest", "PDF"),
]


async def test_file_that_is_not_a_table_is_refused_by_its_content(server: ApiServer) -> None:
    ada = await server.person("ada")
    form = {"pipeline": "lengths"}
    for name, content, words in NO_TABLES:
        for path in ("/api/files", "/api/jobs"):
            reply = await ada.post(path, files={"file": (name, content)}, data=form)
            assert reply.status_code == 422, reply.text
            assert words in reply.text
    assert (await ada.get("/api/files")).json()["files"] == []
    assert await server.stored("") == []


async def test_upload_over_the_limit_is_refused_with_the_limit(
    database_url: str, tmp_path: Path
) -> None:
    async with ApiServer(database_url, tmp_path, max_upload_bytes="1000") as server:
        ada = await server.person("ada")
        reply = await upload(ada, "title\n" + "x" * 2000 + "\n")
        assert (reply.status_code, "1,000 bytes" in reply.json()["detail"]) == (413, True)
        huge = await ada.post("/api/tokens", json={"name": "x" * 2_000_000})
        assert (huge.status_code, "1,048,576 bytes" in huge.json()["detail"]) == (413, True)


async def test_unknown_pipeline_and_field_are_named(server: ApiServer) -> None:
    ada = await server.person("ada")
    reply = await ada.post("/api/jobs", json={"pipeline": "prices"})
    assert (reply.status_code, "lengths" in reply.json()["hint"]) == (422, True)
    reply = await ada.post("/api/jobs", json={"pipeline": "lengths", "maxItmes": 1})
    assert (reply.status_code, "maxItmes" in reply.text) == (422, True)
    reply = await upload(ada, ROWS, pipeline="nothing")
    assert reply.status_code == 422
    reply = await ada.post("/api/jobs", content=b"<job/>", headers={"Content-Type": "text/xml"})
    assert reply.status_code == 415


async def test_orders_that_do_not_fit_the_state_say_which_it_is(server: ApiServer) -> None:
    ada = await server.person("ada")
    job = await finished(server, ada, "chair")
    for order in ("pause", "resume", "cancel", "kickoff"):
        reply = await ada.post(f"/api/jobs/{job['id']}/{order}")
        assert (reply.status_code, "DONE" in reply.json()["detail"]) == (409, True), order


async def test_pause_resume_and_cancel(server: ApiServer) -> None:
    ada = await server.person("ada")
    job_id = (await upload(ada, ROWS)).json()["id"]
    await taken_in(ada, job_id)
    for order, state in (("pause", "PAUSED"), ("resume", "RUNNING"), ("cancel", "CANCELLED")):
        reply = await ada.post(f"/api/jobs/{job_id}/{order}")
        assert (reply.status_code, reply.json()["state"]) == (200, state)
    counts = (await ada.get(f"/api/jobs/{job_id}")).json()["counters"]
    assert (counts["skipped"], counts["open"]) == (3, 0)
    actions = [each["action"] for each in (await ada.get("/api/audit")).json()["entries"]]
    assert {"start", "pause", "resume", "cancel"} <= set(actions)


async def test_kickoff_works_within_the_request(server: ApiServer) -> None:
    ada = await server.person("ada")
    job_id = (await upload(ada, "title\nchair\nstool\n")).json()["id"]
    await taken_in(ada, job_id)
    reply = await ada.post(f"/api/jobs/{job_id}/kickoff?durationMs=20000")
    assert reply.status_code == 200
    assert (reply.json()["worked"], reply.json()["job"]["state"]) == (2, "DONE")


async def test_switched_off_ingest_refuses_uploads(server: ApiServer) -> None:
    ada, admin = await server.person("ada"), await server.person("root", "admin")
    assert (await admin.put("/api/flags/ingest", json={"value": False})).status_code == 204
    assert (await upload(ada, ROWS)).status_code == 503
    assert (await ada.post("/api/files", files={"file": ("a.csv", b"a\n1\n")})).status_code == 503
    assert (await admin.put("/api/flags/ingest", json={"value": True})).status_code == 204
    assert (await upload(ada, ROWS)).status_code == 202


async def test_setting_that_is_off_wins_over_the_flag(database_url: str, tmp_path: Path) -> None:
    async with ApiServer(database_url, tmp_path, db_ingest_enabled="false") as server:
        admin = await server.person("root", "admin")
        assert (await admin.put("/api/flags/ingest", json={"value": True})).status_code == 204
        assert (await upload(admin, ROWS)).status_code == 503


async def test_declared_options_are_checked_and_their_defaults_given(server: ApiServer) -> None:
    ada = await server.person("ada")
    options = {"between": "-", "loud": True}
    made = await upload(ada, "title\noak\n", pipeline="repeated", options=options)
    assert made.json()["options"] == {"times": 2, **options}
    await ended(server, ada, made.json()["id"])
    items = (await ada.get(f"/api/jobs/{made.json()['id']}/items")).json()["items"]
    assert items[0]["row"]["text"] == "OAK-OAK"


UNFITTING_OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"colour": "red"}, "times (whole number); between (-, +); loud (true or false)"),
    ({"times": "often"}, "whole number"),
    ({"times": 1.5}, "whole number"),
    ({"between": "*"}, "-, +"),
    ({"loud": []}, "true or false"),
    ({"_images": True}, "times (whole number)"),  # what the program keeps is not an option
    ({"reading": {"images": True}}, "times (whole number)"),
]


async def test_options_that_do_not_fit_are_refused_with_those_that_do(server: ApiServer) -> None:
    ada = await server.person("ada")
    for options, named in UNFITTING_OPTIONS:
        reply = await upload(ada, "title\noak\n", pipeline="repeated", options=options)
        assert reply.status_code == 422 and named in reply.json()["hint"], options
    assert (await ada.get("/api/jobs")).json()["jobs"] == []


async def test_pipelines_tell_their_options(server: ApiServer) -> None:
    ada = await server.person("ada")
    told = {each["name"]: each for each in (await ada.get("/api/pipelines")).json()["pipelines"]}
    assert told["lengths"]["options"] == []
    assert [(each["name"], each["type"]) for each in told["repeated"]["options"]] == [
        ("times", "int"), ("between", "str"), ("loud", "bool"),
    ]  # fmt: skip


async def test_same_idempotency_key_makes_one_job(server: ApiServer) -> None:
    ada, ben = await server.person("ada"), await server.person("ben")
    file = (await ada.post("/api/files", files={"file": ("a.csv", ROWS.encode())})).json()
    body = {"pipeline": "lengths", "fileId": file["id"]}
    headers = {"Idempotency-Key": "one"}
    first = await ada.post("/api/jobs", json=body, headers=headers)
    again = await ada.post("/api/jobs", json=body, headers=headers)
    assert (again.status_code, again.json()["id"]) == (202, first.json()["id"])
    assert again.headers["idempotency-replayed"] == "true"
    other = await ada.post("/api/jobs", json={**body, "maxItems": 1}, headers=headers)
    assert other.status_code == 422
    assert len((await ada.get("/api/jobs")).json()["jobs"]) == 1
    theirs = await ben.post("/api/jobs", json={"pipeline": "nothing"}, headers=headers)
    assert theirs.status_code == 422  # another's key is another key


async def test_failed_request_may_be_tried_again_with_its_key(server: ApiServer) -> None:
    ada = await server.person("ada")
    headers = {"Idempotency-Key": "two"}
    for _ in range(2):
        reply = await ada.post("/api/jobs", json={"pipeline": "nothing"}, headers=headers)
        assert reply.status_code == 422
        assert "idempotency-replayed" not in reply.headers


@pytest.mark.parametrize("path", ["/api/jobs", "/api/files"])
async def test_only_a_form_may_be_as_large_as_an_upload(server: ApiServer, path: str) -> None:
    ada = await server.person("ada")
    body = b"x" * (MAX_BODY_BYTES + 1)
    for kind in ("text/plain", "Application/JSON", "multipart/mixed", ""):
        headers = {"Content-Type": kind, "Idempotency-Key": "large"}
        reply = await ada.post(path, content=body, headers=headers)
        assert reply.status_code == 413, kind
        assert f"{MAX_BODY_BYTES:,}" in reply.json()["detail"]


async def test_pressure_is_reported_with_the_time_to_wait(
    database_url: str, tmp_path: Path
) -> None:
    async with ApiServer(database_url, tmp_path, backlog_max_items="1") as server:
        ada = await server.person("ada")
        first = await upload(ada, ROWS)
        await taken_in(ada, first.json()["id"])
        while (reply := await upload(ada, ROWS)).status_code == 202:
            await asyncio.sleep(0.2)  # what waits is read once a second
        assert reply.status_code == 429
        assert int(reply.headers["retry-after"]) >= 5


@pytest.mark.parametrize(
    "path",
    ["/api/jobs?pipelines=a%00b", "/api/kill-switches/source:%00", "/api/pending?pipeline=%00"],
)
async def test_nul_in_an_address_is_refused(server: ApiServer, path: str) -> None:
    admin = await server.person("root", "admin")
    for method in ("GET", "PUT", "DELETE"):
        assert (await admin.request(method, path)).status_code == 400


async def test_jobs_are_paged_newest_first_with_bound_cursors(server: ApiServer) -> None:
    ada, ben = await server.person("ada"), await server.person("ben")
    ids = [(await upload(ada, ROWS)).json()["id"] for _ in range(3)]
    first = (await ada.get("/api/jobs?pageSize=2")).json()
    assert [job["id"] for job in first["jobs"]] == [ids[2], ids[1]]
    second = await ada.get("/api/jobs", params={"pageSize": 2, "after": first["next"]})
    assert [job["id"] for job in second.json()["jobs"]] == [ids[0]]
    assert second.json()["next"] is None
    params = {"pageSize": 2, "after": first["next"]}
    assert (await ben.get("/api/jobs", params=params)).status_code == 400
    params["states"] = "DONE"
    assert (await ada.get("/api/jobs", params=params)).status_code == 400


async def test_live_counters_come_as_events_for_the_owner_only(server: ApiServer) -> None:
    ada, ben = await server.person("ada"), await server.person("ben")
    theirs = (await upload(ben, ROWS)).json()["id"]
    async with ada.stream("GET", "/api/events") as reply:
        assert reply.headers["content-type"].startswith("text/event-stream")
        mine = (await upload(ada, ROWS)).json()["id"]
        async for line in reply.aiter_lines():
            if line.startswith("data: "):
                jobs = {job["id"]: job for job in json.loads(line[6:])["jobs"]}
                assert theirs not in jobs
                if mine in jobs and jobs[mine]["counters"]["accepted"] == 3:
                    break


async def test_job_of_a_stored_file_that_is_gone_fails_and_says_so(server: ApiServer) -> None:
    ada = await server.person("ada")
    file = (await ada.post("/api/files", files={"file": ("a.csv", ROWS.encode())})).json()
    for key in await server.stored("uploads/"):
        await server.parts.library.access.store.delete(key)
    job_id = (
        await ada.post("/api/jobs", json={"pipeline": "lengths", "fileId": file["id"]})
    ).json()
    while (job := (await ada.get(f"/api/jobs/{job_id['id']}")).json())["state"] == "RUNNING":
        await asyncio.sleep(0.1)
    assert job["state"] == "FAILED"
    assert "a.csv" in job["error"]
