"""Uploads that are cut off, and what a killed server leaves behind."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from structlog.testing import capture_logs

from tests.api.server import ApiServer

_DAYS = 2 * 86_400


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
    assert [entry["event"] for entry in logged if entry["log_level"] == "error"] == []


async def test_what_a_killed_server_left_is_cleared_and_nothing_else(server: ApiServer) -> None:
    ada = await server.person("ada")
    assert (
        await ada.post("/api/files", files={"file": ("a.csv", b"title\noak\n")})
    ).status_code == 201
    files = server.parts.library.folder
    old, busy = files / ".arriving-old", files / ".arriving-busy"
    export = files / "exports" / ".holdfast-export-old"
    for folder in (old, busy, export):
        folder.mkdir(parents=True)
        (folder / "file").write_bytes(b"half")
        _make_old(folder / "file", folder)
    os.utime(busy / "file")
    kept = set(files.rglob("a.csv"))
    for path in kept:
        _make_old(path, path.parent)
    await server.parts.library.clear_leftovers(server.parts.clock.now().timestamp())
    assert (old.exists(), busy.exists(), export.exists()) == (False, True, False)
    assert set(files.rglob("a.csv")) == kept


def _passing(server: ApiServer) -> list[Path]:
    return [*server.parts.library.folder.glob(".arriving-*")]


def _make_old(*paths: Path) -> None:
    for path in paths:
        at = path.stat().st_mtime - _DAYS
        os.utime(path, (at, at))
