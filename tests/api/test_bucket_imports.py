"""The API with its files in a bucket, and jobs over objects of other buckets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from structlog.testing import capture_logs

from tests.api.server import ApiServer, ended
from tests.file_stores import bucket_of
from tests.fixtures import INCOMING
from tests.seaweedfs import ACCESS_KEY, SECRET_KEY

ROWS = b"title\noak\nelm\n"


@pytest.fixture
def place() -> str:
    """A prefix of the test's own."""
    return f"suppliers-{uuid4().hex[:8]}"


@pytest.fixture
async def server(
    sqlite_url: str, tmp_path: Path, bucket_settings: dict[str, str], place: str
) -> AsyncIterator[ApiServer]:
    settings = {
        name.removeprefix("HOLDFAST_").lower(): text for name, text in bucket_settings.items()
    }
    settings |= {
        "file_buckets": f"{INCOMING}/{place}/open, {INCOMING}/{place}/{{owner}}/",
        "max_upload_bytes": "100000",
        "quota_bytes": "1000",
    }
    incoming = bucket_of(bucket_settings | {"HOLDFAST_FILES_PREFIX": ""}, bucket=INCOMING)
    objects = {
        "open/rows.csv": ROWS,
        "open/large.csv": b"title\n" + b"x" * 100_000,
        "open/many.csv": b"title\n" + b"oak\n" * 500,
        "open/paper.pdf": b"%PDF-1.7 rest",
        "openly/rows.csv": ROWS,
        "ada/rows.csv": ROWS,
        "ben/rows.csv": ROWS,
    }
    for key, content in objects.items():
        await incoming.put(f"{place}/{key}", content, max_bytes=len(content))
    async with ApiServer(sqlite_url, tmp_path, **settings) as started:
        yield started


async def test_objects_are_imported_with_the_checks_of_an_upload(
    server: ApiServer, place: str
) -> None:
    ada = await server.person("ada")

    async def start(key: str) -> Any:
        return await ada.post("/api/jobs", json={"pipeline": "lengths", "bucketKey": key})

    expected = {
        f"{INCOMING}/{place}/openly/rows.csv": 403,
        f"{INCOMING}/{place}/ben/rows.csv": 403,
        f"{INCOMING}/{place}/open/../ben/rows.csv": 422,
        f"{INCOMING}/{place}": 403,
        f"holdfast/{place}/open/rows.csv": 403,
        "open/rows.csv": 403,
        f"{INCOMING}/{place}/open/none.csv": 404,
        f"{INCOMING}/{place}/open/large.csv": 413,
        f"{INCOMING}/{place}/open/many.csv": 409,
        f"{INCOMING}/{place}/open/paper.pdf": 422,
    }
    replies = {key: await start(key) for key in expected}
    assert {key: reply.status_code for key, reply in replies.items()} == expected
    assert await server.stored("") == []
    for key in ("open/rows.csv", "ada/rows.csv"):
        made = await start(f"{INCOMING}/{place}/{key}")
        assert made.status_code == 202, made.text
        assert (await ended(server, ada, made.json()["id"]))["counters"]["done"] == 2
    files = (await ada.get("/api/files")).json()["files"]
    assert {(file["ownerId"], file["kind"], file["name"]) for file in files} == {
        ("ada", "import", "rows.csv")
    }
    shown = "".join(reply.text for reply in replies.values())
    assert ACCESS_KEY not in shown and SECRET_KEY not in shown


async def test_only_one_kind_of_file_is_given(server: ApiServer) -> None:
    ada = await server.person("ada")
    body = {"pipeline": "lengths", "bucketKey": "incoming/a", "path": "a"}
    reply = await ada.post("/api/jobs", json=body)
    assert (reply.status_code, "bucketKey" in reply.text) == (422, True)


async def test_a_store_that_is_gone_answers_503_and_work_waits(
    sqlite_url: str, tmp_path: Path, bucket_settings: dict[str, str]
) -> None:
    settings = {
        name.removeprefix("HOLDFAST_").lower(): text for name, text in bucket_settings.items()
    }
    async with ApiServer(sqlite_url, tmp_path, **settings) as server:
        ada = await server.person("ada")
        file = {"file": ("rows.csv", ROWS)}
        stored = (await ada.post("/api/files", files=file)).json()["id"]
        access = server.parts.library.access
        broken = bucket_of(bucket_settings, secret_access_key="revoked")
        working, access_type = access.store, type(access)
        server.parts.library.access = access_type(broken, access.local, access.max_bytes)
        reply = await ada.post("/api/files", files=file)
        assert (reply.status_code, reply.headers["retry-after"]) == (503, "5")
        assert "Signature" not in reply.text and "revoked" not in reply.text
        body = {"pipeline": "lengths", "fileId": stored}
        with capture_logs() as logged:
            job_id = (await ada.post("/api/jobs", json=body)).json()["id"]
            while not [entry for entry in logged if entry["event"] == "files.gone"]:
                await asyncio.sleep(0.02)
        assert (await ada.get(f"/api/jobs/{job_id}")).json()["state"] == "RUNNING"
        server.parts.library.access = access_type(working, access.local, access.max_bytes)
        assert (await ended(server, ada, job_id))["counters"]["done"] == 2
