"""Connections to the bucket that break in the middle of a download: whoever reads gets all of it or
an error, never a part that looks whole; jobs end with every row."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.api.server import ApiServer, ended, upload
from tests.pictures import png
from tests.proxy import Proxy

ROWS = 3000
WIDE = "x" * 1000


class CuttingProxy(Proxy):
    """Resets a connection once it has brought `cut_after` bytes."""

    cut_after: int | None = None
    cuts = 0

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, to_server: bool = False
    ) -> None:
        passed = 0
        try:
            while data := await reader.read(16 * 1024):
                passed += 0 if to_server else len(data)
                if self.cut_after is not None and passed > self.cut_after:
                    self.cuts += 1
                    writer.transport.abort()
                    return
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            return


@pytest.fixture
async def proxy(bucket_settings: dict[str, str]) -> AsyncIterator[CuttingProxy]:
    async with CuttingProxy(bucket_settings["HOLDFAST_S3_ENDPOINT"]) as started:
        yield started


@pytest.fixture
async def server(
    database_url: str, tmp_path: Path, bucket_settings: dict[str, str], proxy: CuttingProxy
) -> AsyncIterator[ApiServer]:
    settings = {
        name.removeprefix("HOLDFAST_").lower(): value for name, value in bucket_settings.items()
    } | {"s3_endpoint": proxy.url}
    async with ApiServer(database_url, tmp_path, **settings) as started:
        yield started


async def _uploaded(client: httpx2.AsyncClient) -> int:
    table = "title\n" + "".join(f"{number} {WIDE}\n" for number in range(ROWS))
    made = await upload(client, table)
    assert made.status_code == 202, made.text
    return int(made.json()["id"])


async def test_upload_is_read_in_whole_although_each_download_is_cut(
    server: ApiServer, proxy: CuttingProxy
) -> None:
    ada = await server.person("ada")
    proxy.cut_after = 1_000_000
    job_id = await _uploaded(ada)
    while not proxy.cuts:
        await asyncio.sleep(0.01)
    job: dict[str, Any] = (await ada.get(f"/api/jobs/{job_id}")).json()
    assert job["state"] == "RUNNING"
    proxy.cut_after = None
    job = await ended(server, ada, job_id)
    assert job["counters"]["done"] == job["counters"]["accepted"] == ROWS


async def test_image_is_read_in_whole_although_its_download_is_cut(
    server: ApiServer, proxy: CuttingProxy
) -> None:
    ada = await server.person("ada")
    picture = png()[:-12] + b"x" * 3_000_000 + png()[-12:]
    form = {"file": ("a.png", picture)}
    made = await ada.post("/api/jobs", files=form, data={"pipeline": "pictures"})
    assert made.status_code == 202, made.text
    proxy.cut_after = 1_000_000
    shown = (await ada.get("/api/files")).json()["files"]
    image = next(file for file in shown if file["name"] == "a.png")
    await _assert_whole_or_broken(ada, f"/api/files/{image['id']}/image", picture)
    work = asyncio.create_task(ended(server, ada, made.json()["id"]))
    before = proxy.cuts
    while proxy.cuts == before and not work.done():
        await asyncio.sleep(0.01)
    proxy.cut_after = None
    job = await work
    (item,) = (await ada.get(f"/api/jobs/{job['id']}/items")).json()["items"]
    assert (item["status"], item["row"]["bytes"]) == ("DONE", len(picture))


async def test_export_is_downloaded_in_whole_or_visibly_broken(
    server: ApiServer, proxy: CuttingProxy
) -> None:
    ada = await server.person("ada")
    job = await ended(server, ada, await _uploaded(ada))
    export = (await ada.post(f"/api/jobs/{job['id']}/export?format=csv")).json()
    path = f"/api/exports/{export['id']}"
    while (await ada.get(path)).json()["state"] != "DONE":
        await asyncio.sleep(0.05)
    whole = (await ada.get(f"{path}/download")).content
    assert len(whole) > 3_000_000
    proxy.cut_after = 1_000_000
    await _assert_whole_or_broken(ada, f"{path}/download", whole)
    proxy.cut_after = None
    assert (await ada.get(f"{path}/download")).content == whole


async def _assert_whole_or_broken(client: httpx2.AsyncClient, path: str, whole: bytes) -> None:
    try:
        reply = await client.get(path)
    except httpx2.TransportError:
        return
    assert reply.status_code == 503 or reply.content == whole
