"""Jobs over images: stored as they are, an item each, found again by the pipeline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
import structlog

from holdfast.features.deletion.retention import Retention
from holdfast.features.deletion.retention_rows import Policies
from tests.api.server import ApiServer, ended, upload
from tests.pictures import gif, png, webp
from tests.sources.test_image_archives import packed
from tests.store.checks import execute


async def _store(client: httpx2.AsyncClient, name: str, content: bytes) -> dict[str, Any]:
    reply = await client.post("/api/files", files={"file": (name, content)})
    assert reply.status_code == 201, reply.text
    return reply.json()  # type: ignore[no-any-return]


async def test_images_become_items_whose_bytes_the_pipeline_reads(server: ApiServer) -> None:
    ada = await server.person("ada")
    contents = {"oak chair.png": png(640, 480), "b.gif": gif(), "c.csv": webp(b"VP8L", 9, 7)}
    stored = [await _store(ada, name, content) for name, content in contents.items()]
    assert stored[0]["detected"]["width"] == 640
    body = {"pipeline": "pictures", "fileIds": [each["id"] for each in stored]}
    made = await ada.post("/api/jobs", json=body)
    assert (made.status_code, made.json()["name"]) == (202, "3 images")
    job = await ended(server, ada, made.json()["id"])
    items = (await ada.get(f"/api/jobs/{job['id']}/items")).json()["items"]
    assert [item["row"]["name"] for item in items] == list(contents)
    assert [item["row"]["bytes"] for item in items] == [len(each) for each in contents.values()]
    whole = (await ada.get(f"/api/jobs/{job['id']}/items/3")).json()["input"]
    expected = {
        "file_id": stored[2]["id"], "name": "c.csv", "media_type": "image/webp",
        "size": len(contents["c.csv"]), "width": 9, "height": 7, "sha256": stored[2]["sha256"],
    }  # fmt: skip
    assert whole.pop("key") in await server.stored("uploads/")
    assert whole == expected


async def test_image_sent_with_the_job_or_named_alone_is_a_job_of_one(server: ApiServer) -> None:
    ada = await server.person("ada")
    data = {"pipeline": "pictures"}
    sent = await ada.post("/api/jobs", files={"file": ("a.png", png())}, data=data)
    stored = await _store(ada, "b.png", png(5, 5))
    named = await ada.post("/api/jobs", json={"pipeline": "pictures", "fileId": stored["id"]})
    for made, name in ((sent, "a.png"), (named, "b.png")):
        job = await ended(server, ada, made.json()["id"])
        (item,) = (await ada.get(f"/api/jobs/{job['id']}/items")).json()["items"]
        assert item["row"]["name"] == name


async def test_image_is_shown_to_its_owner_as_it_is(server: ApiServer) -> None:
    ada, ben = await server.person("ada"), await server.person("ben")
    stored = await _store(ada, "a.png", png())
    reply = await ada.get(f"/api/files/{stored['id']}/image")
    assert (reply.content, reply.headers["content-type"]) == (png(), "image/png")
    assert (await ben.get(f"/api/files/{stored['id']}/image")).status_code == 404
    theirs = {"pipeline": "pictures", "fileIds": [stored["id"]]}
    assert (await ben.post("/api/jobs", json=theirs)).status_code == 404
    table = await _store(ada, "a.csv", b"title\nchair\n")
    assert (await ada.get(f"/api/files/{table['id']}/image")).status_code == 404


async def test_broken_image_is_refused_and_not_kept(server: ApiServer) -> None:
    ada = await server.person("ada")
    reply = await ada.post("/api/files", files={"file": ("a.png", png()[:40])})
    assert reply.status_code == 422 and "damaged image" in reply.json()["detail"]
    assert (await ada.get("/api/files")).json()["files"] == []


async def test_tables_and_images_make_no_job_together(server: ApiServer) -> None:
    ada = await server.person("ada")
    image, table = await _store(ada, "a.png", png()), await _store(ada, "a.csv", b"title\nx\n")
    body = {"pipeline": "pictures", "fileIds": [image["id"], table["id"]]}
    assert (await ada.post("/api/jobs", json=body)).status_code == 422
    several = {"pipeline": "pictures", "fileIds": [image["id"]], "fileId": image["id"]}
    assert (await ada.post("/api/jobs", json=several)).status_code == 422


async def test_row_of_a_table_opens_no_file(server: ApiServer) -> None:
    ada, eve = await server.person("ada"), await server.person("eve")
    stored = await _store(ada, "a.png", png())
    (key,) = await server.stored("uploads/")
    row = json.dumps({"name": "a.png", "sha256": stored["sha256"], "key": key})
    made = await upload(eve, row + "\n" + row + "\n", "rows.jsonl", pipeline="pictures")
    job_id = made.json()["id"]
    job = await ended(server, eve, job_id)
    assert (job["counters"]["done"], job["counters"]["error"]) == (0, 2)


@pytest.mark.parametrize("kind", ["image", "zip"])
async def test_retention_keeps_the_images_of_jobs_that_are_there(
    server: ApiServer, tmp_path: Path, kind: str
) -> None:
    ada, bob = await server.person("ada"), await server.person("bob")
    unused = await _store(bob, "unused.png", png())
    table = await ada.post("/api/files", files={"file": ("unused.csv", b"title\noak\n")})
    content = packed(tmp_path / "a.zip", {"a.png": png()}).read_bytes() if kind == "zip" else png()
    stored = await _store(ada, f"a.{kind}", content)
    body = {"pipeline": "pictures", "fileId": stored["id"]}
    job_id = (await ada.post("/api/jobs", json=body)).json()["id"]
    later = await _store(ada, "later.png", png())
    await execute(server.parts.store, "update files set created_at = @after(-864000)")
    deleter, log = server.parts.deletions.jobs, structlog.get_logger()
    await Retention(server.parts.store, deleter, Policies(files_days=5), log).apply()
    left = {file["id"] for file in (await ada.get("/api/files")).json()["files"]}
    assert stored["id"] in left and not left & {table.json()["id"], later["id"]}
    assert (await bob.get(f"/api/files/{unused['id']}")).status_code == 404
    assert (await ended(server, ada, job_id))["counters"]["done"] == 1
    await server.parts.deletions.jobs.begin(job_id, "ada")
    await Retention(server.parts.store, deleter, Policies(files_days=5), log).apply()
    await Retention(server.parts.store, deleter, Policies(files_days=5), log).apply()
    assert (await ada.get("/api/files")).json()["files"] == []
