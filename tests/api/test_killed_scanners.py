"""Scanners are killed, as processes, at every step, at every kind of place: each file becomes one
job."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import structlog

from holdfast.kernel.worker.lost_workers import LostWorkers
from tests.api.doomed_scan import STEPS
from tests.api.server import ApiServer
from tests.api.test_ingestion import ROWS, watch
from tests.file_stores import bucket_of
from tests.fixtures import INCOMING
from tests.ftp import PASSWORD, FtpFolder

KINDS = ("folder", "ftp", "s3")


@dataclass(slots=True)
class Place:
    kind: str
    address: str
    settings: dict[str, str]
    folder: Path | None = None
    bucket: Any = None

    async def put(self, name: str, content: bytes) -> None:
        if self.folder is not None:
            (self.folder / name).write_bytes(content)
        else:
            await self.bucket.put(name, content, max_bytes=1000)

    async def names(self) -> list[str]:
        if self.folder is not None:
            files = (path for path in self.folder.rglob("*") if path.is_file())
            return sorted(str(path.relative_to(self.folder)) for path in files)
        return sorted([info.key async for info in self.bucket.list("")])


@pytest.fixture(params=KINDS)
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    folder = tmp_path / "incoming"
    folder.mkdir()
    with ExitStack() as stack:
        match request.param:
            case "folder":
                yield Place("folder", str(folder), {"file_roots": str(folder)}, folder)
            case "ftp":
                server = stack.enter_context(FtpFolder(folder))
                settings = {"ingest_passwords": f"in={PASSWORD}"}
                yield Place("ftp", server.address, settings, folder)
            case _:
                given: dict[str, str] = request.getfixturevalue("bucket_settings")
                prefix = f"killed-{uuid4().hex[:8]}"
                bucket = bucket_of(given | {"HOLDFAST_FILES_PREFIX": prefix}, bucket=INCOMING)
                settings = {name.removeprefix("HOLDFAST_").lower(): v for name, v in given.items()}
                settings["file_buckets"] = f"{INCOMING}/{prefix}/"
                yield Place("s3", f"{INCOMING}/{prefix}", settings, bucket=bucket)


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_file_becomes_one_job_though_its_scanner_dies(
    database_url: str, tmp_path: Path, place: Place, step: str
) -> None:
    async with ApiServer(database_url, tmp_path / "server", **place.settings) as server:
        admin = await server.person("ada", "admin")
        await watch(admin, place.address, place.kind)
        await place.put("rows.csv", ROWS)
        await place.put("z.pdf", b"%PDF-1.7 rest")
        doomed = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.api.doomed_scan", "in", step,
            env=os.environ | server.environment, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        _, errors = await doomed.communicate()
        assert doomed.returncode == -signal.SIGKILL, errors.decode()
        await LostWorkers(server.parts.store, "observer", structlog.get_logger()).free()
        # Two processes find what it left, at the same time.
        adapter = await server.parts.console.adapters.named("in")
        await asyncio.gather(*(server.parts.scans.scan(adapter) for _ in range(2)))
        await LostWorkers(server.parts.store, "observer", structlog.get_logger()).free()
        await server.parts.scans.scan(adapter)
        jobs = (await admin.get("/api/jobs")).json()["jobs"]
        assert [job["name"] for job in jobs] == ["rows.csv"]
        assert await place.names() == [
            "done/rows.csv", "failed/z.pdf", "failed/z.pdf.reason.txt",
        ]  # fmt: skip
