"""A request for a job that is refused, or whose server is killed, leaves no file behind."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.features.library.files import NewFile
from tests.api.server import ApiServer, ended
from tests.pictures import png
from tests.sources.test_image_archives import packed
from tests.store.checks import fetch

TABLE = ("rows.csv", b"title,other\noak,1\n")


@pytest.fixture
async def server(database_url: str, tmp_path: Path) -> AsyncIterator[ApiServer]:
    settings = {"file_roots": str(tmp_path), "max_urls_per_run": "5", "quota_jobs": "2"}
    async with ApiServer(database_url, tmp_path, **settings) as started:
        yield started


REFUSED: dict[str, tuple[int, dict[str, str]]] = {
    "unknown pipeline": (422, {"pipeline": "nothing"}),
    "a pipeline that plans": (422, {"pipeline": "planning"}),
    "wrong options": (422, {"pipeline": "repeated", "options": '{"times": "often"}'}),
    "beyond the cap": (422, {"pipeline": "lengths", "maxItems": "6"}),
    "unknown column": (422, {"pipeline": "lengths", "columns": '{"nowhere": "title"}'}),
    "two columns for a field": (422, {"pipeline": "lengths", "columns": '{"other": "title"}'}),
    "for a standing job": (422, {"pipeline": "lengths", "standing": "true"}),
    "a second file": (422, {"pipeline": "lengths", "fileId": "1"}),
    "switched off": (503, {"pipeline": "lengths"}),
    "too many jobs": (409, {"pipeline": "lengths"}),
}


@pytest.mark.parametrize("reason", REFUSED)
async def test_refused_upload_leaves_no_file(server: ApiServer, reason: str) -> None:
    ada = await server.person("ada")
    status, fields = REFUSED[reason]
    if reason == "switched off":
        await server.parts.store.jobs.switch("all", True, "tester")
    if reason == "too many jobs":
        for name in ("lengths", "pictures"):
            made = await ada.post("/api/jobs", json={"pipeline": name, "standing": True})
            assert made.status_code == 202, made.text
    refused = await ada.post("/api/jobs", files={"file": TABLE}, data=fields)
    assert refused.status_code == status, refused.text
    await _assert_nothing_is_left(server)


@pytest.mark.parametrize("kind", ["image", "zip", "path"])
async def test_refused_images_and_imports_leave_no_file(server: ApiServer, kind: str) -> None:
    ada = await server.person("ada")
    await server.parts.store.jobs.switch("pipeline:pictures", True, "tester")
    path = server.folder / "a.png"
    path.write_bytes(png())
    if kind == "zip":
        path = packed(server.folder / "a.zip", {"a.png": png(), "b.png": png(5, 5)})
    if kind == "path":
        refused = await ada.post("/api/jobs", json={"pipeline": "pictures", "path": str(path)})
    else:
        form = {"file": (path.name, path.read_bytes())}
        refused = await ada.post("/api/jobs", files=form, data={"pipeline": "pictures"})
    assert refused.status_code == 503, refused.text
    await _assert_nothing_is_left(server)


async def test_file_of_a_started_job_stays(server: ApiServer) -> None:
    ada = await server.person("ada")
    made = await ada.post("/api/jobs", files={"file": TABLE}, data={"pipeline": "lengths"})
    assert made.status_code == 202, made.text
    assert (await ended(server, ada, made.json()["id"]))["counters"]["done"] == 1
    (file,) = (await ada.get("/api/files")).json()["files"]
    assert file["name"] == "rows.csv"
    stored = "select subject from audit where action = 'file.stored'"
    assert [row[0] for row in await fetch(server.parts.store, stored)] == [str(file["id"])]


async def test_file_of_an_unanswered_request_is_deleted_with_its_owner(server: ApiServer) -> None:
    await server.person("ada")
    await server.parts.library.access.store.put("uploads/draft", b"title", max_bytes=5)
    new = NewFile("ada", "a.csv", "upload", "uploads/draft", 5, "hash", {}, draft=True)
    await server.parts.console.files.add_file(new)
    await server.parts.deletions.begin_user("ada", "tester")
    await server.parts.deletions.look()
    await _assert_nothing_is_left(server)


async def test_rows_of_a_file_elsewhere_are_added_and_the_file_is_not_stored(
    server: ApiServer,
) -> None:
    ada = await server.person("ada")
    opened = await ada.post("/api/jobs", json={"pipeline": "lengths", "standing": True})
    path = f"/api/jobs/{opened.json()['id']}/files"
    (server.folder / "rows.csv").write_bytes(TABLE[1])
    body = {"path": str(server.folder / "rows.csv")}
    refused = await ada.post(path, json={**body, "key": "nowhere"})
    assert refused.status_code == 422
    added = await ada.post(path, json=body)
    assert added.json()["accepted"] == 1
    await _assert_nothing_is_left(server)


async def _assert_nothing_is_left(server: ApiServer) -> None:
    assert await fetch(server.parts.store, "select name from files") == []
    assert await server.stored("") == []
