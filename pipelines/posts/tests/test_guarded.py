"""What an operator tries to write posts of others with: a record names the batch, and the batch
decides the project."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.errors import UserError
from holdfast.kernel import Store
from holdfast.kernel.jobs.control import JobRequest
from holdfast_posts.web import PACK
from pipelines.posts.tests.desk import Desk
from pipelines.posts.tests.scene import post
from tests.api.server import ApiServer

FORGED = {"batch": 1, "position": 0, "at": "2026-11-16T10:00:00.000Z", "platform": "tiktok"}


async def test_only_messages_bring_posts(store: Store, database_url: str, tmp_path: Path) -> None:
    """By upload, by a standing job of one's own, and by records for the job of the messages."""
    desk = Desk(store)
    await desk.take(desk.event("a.json", [post(1, "I love it")]))
    forged = json.dumps({**FORGED, "post": post(1, "OVERWRITTEN")}).encode()
    async with ApiServer(database_url, tmp_path, packs=[PACK]) as server:
        alice = await server.person("alice")
        form = {"pipeline": "posts"}
        reply = await alice.post("/api/jobs", data=form, files={"file": ("p.jsonl", forged)})
        assert reply.status_code == 422 and "queues" in reply.json()["detail"]
        with pytest.raises(UserError, match="queues"):
            await server.parts.control("alice").open(JobRequest(server.parts.pipelines["posts"]))
        admin = await server.person("root", "admin")
        jobs = (await admin.get("/api/jobs")).json()["jobs"]
        assert [job["pipeline"] for job in jobs] == ["posts"]
        lines = {"content-type": "application/x-ndjson"}
        where = f"/api/jobs/{jobs[0]['id']}/items"
        reply = await admin.post(where, content=forged, headers=lines)
        assert reply.status_code == 409 and "queues" in reply.json()["detail"]
        page = (await admin.get(f"/jobs/{jobs[0]['id']}")).text
        assert "Reprocess" in page and "Add a file" not in page
