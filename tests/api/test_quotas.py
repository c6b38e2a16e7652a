"""Quotas: how much one owner may have, and the error beyond it (V9)."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.api.server import ApiServer, finished

ROWS = b"title\noak\n"


async def test_each_amount_has_a_limit(database_url: str, tmp_path: Path) -> None:
    limits = {"quota_files": "2", "quota_exports": "2", "quota_jobs": "2", "quota_tokens": "2"}
    async with ApiServer(database_url, tmp_path, **limits) as server:
        ada, rita = await server.person("ada"), await server.person("rita", "reader")
        job = (await finished(server, ada, "oak"))["id"]

        file = {"file": ("more.csv", ROWS)}
        assert (await ada.post("/api/files", files=file)).status_code == 201
        refused = await ada.post("/api/files", files=file)
        assert refused.status_code == 409 and "2 are allowed" in refused.json()["detail"]

        path = f"/api/jobs/{job}/export?format=csv"
        for client in (ada, rita):
            replies = await asyncio.gather(*(client.post(path) for _ in range(6)))
            statuses = sorted(reply.status_code for reply in replies)
            assert statuses == [202, 202, 409, 409, 409, 409], "exactly, however they come"

        assert (await ada.post("/api/tokens", json={"name": "a"})).status_code == 201
        assert (await ada.post("/api/tokens", json={"name": "b"})).status_code == 409

        again = {"pipeline": "lengths", "fileId": 1}
        made = [(await ada.post("/api/jobs", json=again)).status_code for _ in range(3)]
        assert made == [202, 202, 409]

        usage = (await ada.get("/api/session/usage")).json()
        assert usage["used"]["files"] == usage["limits"]["files"] == 2
        assert usage["used"]["exports"] == 2 and usage["used"]["jobs"] == 2
        page = (await ada.get("/account")).text
        assert "Limit" in page


async def test_bytes_have_a_limit_and_nothing_is_left_behind(
    database_url: str, tmp_path: Path
) -> None:
    async with ApiServer(database_url, tmp_path, quota_bytes="15") as server:
        ada = await server.person("ada")
        for name, status in (("a.csv", 201), ("b.csv", 409)):
            reply = await ada.post("/api/files", files={"file": (name, ROWS)})
            assert reply.status_code == status, reply.text
        assert len(await server.stored("uploads/")) == 1
