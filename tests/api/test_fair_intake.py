"""Intake of uploads: files that fail end with a message and do not block those of others (V3)."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from holdfast.kernel import NewJob, NewStream
from holdfast.reading import Reading
from tests.api.server import ApiServer, taken_in, upload
from tests.store.checks import execute


async def _bad_job(server: ApiServer, owner: str, file_id: int) -> int:
    """Over a stored file, with options that make opening it fail unexpectedly."""
    new = NewJob(
        "lengths", "bad", [NewStream("upload-{job}", "bad")], owner_id=owner, reference="uploads/a",
        file_id=file_id, reading=Reading(table={"encoding": 7}),
    )  # fmt: skip
    return await server.parts.store.jobs.create(new, owner)


async def test_unforeseen_errors_end_the_job_and_others_are_taken_in(server: ApiServer) -> None:
    ada, ben = await server.person("ada"), await server.person("ben")
    file = (await ada.post("/api/files", files={"file": ("a.csv", b"title\noak\n")})).json()
    bad = [await _bad_job(server, "ada", file["id"]) for _ in range(4)]
    made = await upload(ben, "title\nelm\n")
    assert (await taken_in(ben, made.json()["id"]))["discoveredAt"]
    for job_id in bad:
        while (job := (await ada.get(f"/api/jobs/{job_id}")).json())["state"] == "RUNNING":
            await asyncio.sleep(0.05)
        assert job["state"] == "FAILED"
        assert "the file cannot be read" in job["error"]


@pytest.mark.parametrize("table", [7, ["names"], {"names": 7}])
async def test_job_with_odd_stored_options_fails_in_words_and_is_shown(
    server: ApiServer, table: Any
) -> None:
    """As another version of the program may have stored them."""
    ada = await server.person("ada")
    file = (await ada.post("/api/files", files={"file": ("a.csv", b"title\noak\n")})).json()
    job_id = await _bad_job(server, "ada", file["id"])
    reading = orjson.dumps({"table": table}).decode()
    store = server.parts.store
    await execute(store, "update jobs set reading = :r where id = :id", r=reading, id=job_id)
    assert (await ada.get(f"/jobs/{job_id}")).status_code == 200
    while (job := (await ada.get(f"/api/jobs/{job_id}")).json())["state"] == "RUNNING":
        await asyncio.sleep(0.02)
    assert job["state"] == "FAILED"
    assert "do not name columns" in job["error"]
