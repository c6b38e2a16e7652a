"""Hostile values: refused with a message, never a server error or harm to others."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.api.server import ApiServer, ended, finished, taken_in, upload
from tests.store.checks import execute

DEEP = "[" * 300 + "]" * 300
SCHEDULE = {"name": "a", "pipeline": "shelves", "cron": "* * * * *"}
JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    "query", ["from=0001-01-01T00:00:00%2B14:00", "to=9999-12-31T23:59:59-14:00"]
)
async def test_times_outside_of_time_are_refused(server: ApiServer, query: str) -> None:
    ada = await server.person("ada")
    job = await finished(server, ada, "broken")
    name, _, value = query.replace("%2B", "+").partition("=")
    filter = {"jobIds": [job["id"]], "statuses": ["ERROR"], name: value}
    word = {"from": "since", "to": "until"}[name]
    replies = [
        await ada.get(f"/api/jobs/{job['id']}/items?statuses=ERROR&{query}"),
        await ada.get(f"/api/pending?{query}"),
        await ada.post("/api/operations/preview", json={"kind": "reprocess", "filter": filter}),
        await ada.get(f"/jobs/{job['id']}", params={"q": f"{word}:{value}"}),
    ]
    assert [reply.status_code for reply in replies] == [422] * 4


async def test_early_times_are_times(server: ApiServer) -> None:
    ada = await server.person("ada")
    job = await finished(server, ada, "broken")
    for since in ("0001-01-01", "0900-01-01T00:00:00Z"):
        path = f"/api/jobs/{job['id']}/items?statuses=ERROR&from={since}"
        assert len((await ada.get(path)).json()["items"]) == 1


async def test_what_is_not_a_time_zone_is_refused(server: ApiServer) -> None:
    admin = await server.person("root", "admin")
    for zone in ("America", "a" * 100, "../../etc/passwd", "/etc/passwd", ""):
        body = {"pipeline": "shelves", "cron": "0 6 * * *", "zone": zone}
        assert (await admin.put("/api/schedules/nightly", json=body)).status_code == 422, zone


@pytest.mark.parametrize(
    ("value", "job_status"),
    [
        ('"\\ud800"', 400),  # not JSON for the parser that reads large bodies
        ("1" + "0" * 40, 422),
        (DEEP, 422),
        ('{"a":' * 300 + "1" + "}" * 300, 422),
    ],
    ids=["surrogate", "number", "lists", "objects"],
)
async def test_options_that_cannot_be_kept_are_refused(
    server: ApiServer, value: str, job_status: int
) -> None:
    admin = await server.person("root", "admin")
    options = f'"options": {{"region": {value}}}'
    schedule = f'{{"pipeline": "regional", "cron": "0 6 * * *", {options}}}'
    job = f'{{"pipeline": "regional", {options}}}'
    refused = await admin.put("/api/schedules/nightly", content=schedule, headers=JSON)
    assert refused.status_code == 422, refused.text
    made = await admin.post("/api/jobs", content=job, headers=JSON)
    assert made.status_code == job_status, made.text
    assert (await admin.get("/api/schedules")).json()["schedules"] == []
    assert (await admin.get("/api/jobs")).json()["jobs"] == []


async def test_record_that_nests_too_deep_is_an_error_with_its_line(server: ApiServer) -> None:
    ada = await server.person("ada")
    rows = '{"title": "fine"}\n' * 2000
    early = await upload(ada, f'{{"title": {DEEP}}}\n', "rows.jsonl")
    assert early.status_code == 422 and "line 1 nests deeper" in early.json()["detail"]
    late = (await upload(ada, f'{rows}{{"title": {DEEP}}}\n', "rows.jsonl")).json()
    await taken_in(ada, late["id"])
    await server.work(late["id"])
    job = (await ada.get(f"/api/jobs/{late['id']}")).json()
    counters = job["counters"]
    assert (job["state"], counters["done"], counters["error"]) == ("DONE", 2000, 1)
    (item,) = (await ada.get(f"/api/jobs/{late['id']}/items?status=ERROR")).json()["items"]
    assert item["errorCode"] == "BAD_ROW" and "line 2,001 nests deeper" in item["errorMessage"]


async def test_deepest_record_can_be_shown_and_exported(server: ApiServer) -> None:
    ada = await server.person("ada")
    inner = "[" * 99 + "]" * 99
    made = await upload(ada, f'{{"title": "oak", "more": {inner}}}\n', "rows.jsonl")
    job = await ended(server, ada, made.json()["id"])
    for path in (f"/api/jobs/{job['id']}/items/1", f"/jobs/{job['id']}/items/1"):
        assert (await ada.get(path)).status_code == 200
    for format in ("csv", "xlsx", "jsonl"):
        path = f"/api/jobs/{job['id']}/export?format={format}&withInput=true"
        export = (await ada.post(path)).json()
        while export["state"] in ("QUEUED", "RUNNING"):
            await asyncio.sleep(0.05)
            export = (await ada.get(f"/api/exports/{export['id']}")).json()
        assert (export["state"], export["error"]) == ("DONE", None)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8\0", "\0", "x" * 41, "\ud800"])
async def test_an_encoding_that_does_not_fit_is_refused_at_once(
    server: ApiServer, encoding: str
) -> None:
    ada = await server.person("ada")
    form = {"file": ("rows.csv", b"title\nchair\n")}
    stored = (await ada.post("/api/files", files=form)).json()["id"]
    body = as_json({"pipeline": "lengths", "fileId": stored, "encoding": encoding})
    made = await ada.post("/api/jobs", content=body, headers=JSON)
    assert made.status_code in (400, 422), made.text
    if "\ud800" not in encoding:
        sent = await ada.post("/api/files", files=form, data={"encoding": encoding})
        shown = await ada.get(f"/api/files/{stored}", params={"encoding": encoding})
        assert {sent.status_code, shown.status_code} <= {400, 422}
    assert (await ada.get("/api/jobs")).json()["jobs"] == []


def as_json(body: dict[str, Any]) -> str:
    return json.dumps(body)  # writes a lone surrogate, which other writers refuse


async def test_codecs_that_are_not_text_encodings_are_refused(server: ApiServer) -> None:
    ada = await server.person("ada")
    for encoding in (
        "unicode_escape", "raw_unicode_escape", "utf-7", "idna", "punycode", "undefined"
    ):  # fmt: skip
        reply = await upload(ada, "title\n\\ud800\n+2AA-\n", encoding=encoding)
        assert reply.status_code == 422 and "encoding" in reply.json()["detail"], encoding


async def test_odd_paths_of_the_servers_files_are_refused(
    database_url: str, tmp_path: Path
) -> None:
    root = tmp_path / "open"
    root.mkdir()
    (root / "circle").symlink_to("circle")
    (root / "out").symlink_to("/etc/passwd")
    async with ApiServer(database_url, tmp_path, file_roots=str(root)) as server:
        ada = await server.person("ada")
        for path in (
            "a" * 300,
            "circle",
            "circle/x",
            "out",
            "..",
            "../../etc/passwd",
            "/etc/passwd",
        ):
            reply = await ada.post("/api/jobs", json={"pipeline": "lengths", "path": path})
            assert reply.status_code == 403


async def test_a_job_over_a_file_of_the_server_keeps_what_it_was(
    database_url: str, tmp_path: Path
) -> None:
    """Whatever becomes of the file afterwards, a link to a secret for example."""
    root = tmp_path / "open"
    root.mkdir()
    secret = tmp_path / "secret.csv"
    secret.write_text("title\nsecret\n")
    place = root / "rows.csv"
    place.write_text("title\noak\n")
    async with ApiServer(database_url, tmp_path, file_roots=str(root)) as server:
        ada = await server.person("ada")
        body = {"pipeline": "lengths", "path": "rows.csv"}
        made = (await ada.post("/api/jobs", json=body)).json()
        place.unlink()
        place.symlink_to(secret)
        await ended(server, ada, made["id"])
        shown = await ada.get(f"/api/files/{made['fileId']}")
        assert shown.json()["rows"] == [{"title": "oak"}]
        again = await ada.post("/api/jobs", json={"pipeline": "lengths", "fileId": made["fileId"]})
        assert again.status_code == 202
        assert (await ada.post("/api/jobs", json=body)).status_code == 403


ODD_FORMS: list[tuple[str, dict[str, Any]]] = [
    ("/jobs/{id}/resume", {"max_items": "9" * 5000}),
    ("/jobs/{id}/bulk", {"kind": "reprocess", "q": "code:ÄÖ"}),
    ("/jobs/{id}/bulk", {"kind": "reprocess", "q": "ERROR", "items_per_second": "9000000"}),
    ("/jobs/{id}/bulk", {"kind": "skip", "seqs": "0"}),
    ("/jobs/{id}/bulk", {"kind": "skip", "seqs": "1", "reason": "a\0b"}),
    ("/new", {"pipeline": "lengths", "file_id": "9" * 5000}),
    ("/gates/close", {"name": "a\0b", "minutes": "5"}),
    ("/gates/close", {"name": "a", "minutes": "9" * 5000}),
    ("/account/tokens", {"name": "a", "days": "9" * 5000}),
    ("/account/tokens", {"name": "a\0b"}),
    ("/settings/switches", {"scope": "all", "reason": "a\0b", "on": "1"}),
    (
        "/schedules",
        {"name": "a", "pipeline": "shelves", "cron": "* * * * *", "zone": "America"},
    ),
    ("/schedules", {"name": "a\0b", "pipeline": "shelves", "cron": "* * * * *"}),
]


async def test_odd_values_of_forms_are_refused(server: ApiServer) -> None:
    admin = await server.person("root", "admin")
    job = await finished(server, admin, "broken")
    for path, form in ODD_FORMS:
        reply = await admin.post(path.format(id=job["id"]), data=form)
        assert 400 <= reply.status_code < 500, (path, reply.text[-300:])


async def test_odd_stored_values_break_no_page(server: ApiServer) -> None:
    """As another version of the program might write them."""
    root = await server.person("root", "admin")
    made = await root.post("/api/jobs", json={"pipeline": "shelves"})
    job_id, store = made.json()["id"], server.parts.store
    stream_id = (await store.streams.of_job(job_id))[0].id
    paths = ("/", "/jobs", "/api/jobs", f"/jobs/{job_id}", f"/api/jobs/{job_id}", "/streams",
             "/api/streams", f"/streams/{stream_id}", f"/api/jobs/{job_id}/streams")  # fmt: skip
    for change in (
        "update jobs set columns = 'null'",
        "update jobs set columns = '[1]', options = '[1]'",
        "update jobs set options = 'null', lane = 'later'",
        "update streams set state = 'LATER'",
        "update jobs set state = 'LATER'",
    ):
        await execute(store, change)
        statuses = [(await root.get(path)).status_code for path in paths]
        assert statuses == [200] * len(paths), (change, statuses)
    shown = (await root.get(f"/api/jobs/{job_id}")).json()
    assert shown["state"] == "FAILED" and "LATER" in shown["error"]
    for action in ("pause", "resume", "cancel", "reprocess", "skip", "kickoff"):
        reply = await root.post(f"/api/jobs/{job_id}/{action}", json={})
        assert reply.status_code < 500, (action, reply.text)
    assert (await root.delete(f"/api/jobs/{job_id}")).status_code == 409


async def test_schedule_may_have_any_printable_name(server: ApiServer) -> None:
    admin = await server.person("root", "admin")
    for path in ("north/east", "north%2Feast", "a%20b"):
        body = {"pipeline": "shelves", "cron": "0 6 * * *"}
        assert (await admin.put(f"/api/schedules/{path}", json=body)).status_code == 204, path
    schedules = (await admin.get("/api/schedules")).json()["schedules"]
    assert [each["name"] for each in schedules] == ["a b", "north/east"]
    assert (await admin.delete("/api/schedules/north/east")).status_code == 204


@pytest.mark.parametrize("end", ["%0A", "%0D", "%7F"])
async def test_path_with_a_control_character_is_no_other_path(server: ApiServer, end: str) -> None:
    admin = await server.person("root", "admin")
    reply = await admin.put(f"/api/kill-switches/all{end}", json={})
    assert (reply.status_code, reply.json()["title"]) == (400, "Bad Request")
    assert (await admin.get("/api/kill-switches")).json()["killSwitches"] == []
