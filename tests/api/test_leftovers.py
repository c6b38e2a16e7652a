"""Uploads that are cut off, and what a killed server leaves behind."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

from structlog.testing import capture_logs

from tests.api.server import ApiServer, finished


async def test_upload_that_is_cut_off_leaves_nothing_behind(server: ApiServer) -> None:
    ada = await server.person("ada")
    host, port = server.url.removeprefix("http://").split(":")
    head = (
        f"POST /api/jobs HTTP/1.1\r\nHost: {host}\r\nAuthorization: {ada.headers['authorization']}"
        "\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 100000000\r\n\r\n"
        '--x\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\ntitle\n'
    )
    with capture_logs() as logged:
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(head.encode() + b"oak\n" * 1_000_000)
        await writer.drain()
        while not _passing(server):
            await asyncio.sleep(0.01)
        writer.close()
        await writer.wait_closed()
        while _passing(server):
            await asyncio.sleep(0.01)
        assert (await ada.get("/api/files")).json()["files"] == []
        assert (await ada.get("/api/jobs")).json()["jobs"] == []
        assert await server.stored("") == []
    assert [entry["event"] for entry in logged if entry["log_level"] == "error"] == []


async def test_objects_without_a_row_are_removed_when_they_are_old(server: ApiServer) -> None:
    ada = await server.person("ada")
    job = await finished(server, ada, "oak")
    export = (await ada.post(f"/api/jobs/{job['id']}/export?format=csv")).json()
    while (await ada.get(f"/api/exports/{export['id']}")).json()["state"] != "DONE":
        await asyncio.sleep(0.05)
    files, leftovers = server.parts.library.access.store, server.parts.runners.leftovers
    kept = [*await server.stored("uploads/"), *await server.stored("exports/")]
    assert len(kept) == 2
    orphans = ["uploads/nobody", "exports/nobody"]
    for key in [*orphans, "pipelines/prices/own"]:
        await files.put(key, b"half", max_bytes=4)
    now = datetime.now(UTC)
    await leftovers.clear(now)
    assert set(orphans) <= set(await server.stored(""))
    await leftovers.clear(now + timedelta(days=2))
    assert set(await server.stored("")) == {*kept, "pipelines/prices/own"}


def _passing(server: ApiServer) -> list[Path]:
    return [*server.parts.library.access.local.folder.glob(".passing-*")]
