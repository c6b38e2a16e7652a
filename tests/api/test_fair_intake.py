"""Intake of uploads: files that fail end with a sentence and keep nobody else's out (V3)."""

from __future__ import annotations

import asyncio

from holdfast.store import NewJob, NewStream
from tests.api.server import ApiServer, taken_in, upload


async def _bad_job(server: ApiServer, owner: str, file_id: int) -> int:
    """Over a stored file, with options that make opening it fail as nobody foresaw."""
    new = NewJob(
        "lengths", "bad", [NewStream("upload-{job}", "bad")], owner_id=owner, reference="uploads/a",
        file_id=file_id, options={"_table": {"encoding": 7}},
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
        assert "cannot be ingested" in job["error"]
