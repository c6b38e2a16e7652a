"""Servers that are killed between writing an object and its row: nothing that was answered is
missing, no row is without its object, and what is left over is removed."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest
import structlog

from holdfast.cli.composition import file_access
from holdfast.configuration import load_settings
from holdfast.features.console import open_console
from holdfast.features.library.file_leftovers import FileLeftovers
from holdfast.kernel import open_store
from tests.files.test_two_hosts import Hosts, ended, exported, is_written, upload, wait

ROWS = {"file": ("rows.csv", b"title\noak\n")}


@pytest.fixture
def hosts(sqlite_url: str, tmp_path: Path, bucket_settings: dict[str, str]) -> Iterator[Hosts]:
    opened = Hosts(sqlite_url, tmp_path, bucket_settings)
    yield opened
    opened.close()


async def _keys(url: str, settings: dict[str, str], clear: bool) -> list[str]:
    """The keys in the store; with `clear`, after the upkeep of two days later."""
    access = file_access(load_settings(settings))
    store = await open_store(url)
    try:
        if clear:
            leftovers = FileLeftovers(open_console(store), access, "test", structlog.get_logger())
            await leftovers.clear_store(datetime.now(UTC) + timedelta(days=2))
        return [info.key async for info in access.store.list("")]
    finally:
        await store.close()


def test_objects_and_rows_after_a_kill(
    hosts: Hosts, sqlite_url: str, bucket_settings: dict[str, str]
) -> None:
    def keys(clear: bool = False) -> list[str]:
        return asyncio.run(_keys(sqlite_url, bucket_settings, clear))

    doomed, client = hosts.api(HOLDFAST_FAULT="add_file/add_file")
    hosts.log_in()
    client.headers.update(hosts.headers)
    with pytest.raises(httpx2.TransportError):
        client.post("/api/files", files=ROWS)
    assert doomed.wait(30) == -signal.SIGKILL
    assert len(keys()) == 1

    doomed, client = hosts.api(HOLDFAST_FAULT="finish_export/finish_export")
    assert client.get("/api/files").json()["files"] == []
    hosts.worker()
    job_id = upload(client, 1)
    ended(client, job_id)
    export_id = exported(client, job_id)
    assert doomed.wait(60) == -signal.SIGKILL
    assert len(keys()) == 3  # an orphan, the upload, half an export

    _, client = hosts.api()
    wait(lambda: is_written(client, export_id))
    assert client.get(f"/api/exports/{export_id}/download").status_code == 200
    assert len(keys()) == 4
    left = keys(clear=True)
    assert len(left) == 2
    assert client.get(f"/api/exports/{export_id}/download").status_code == 200
    file_id = client.get("/api/files").json()["files"][0]["id"]
    assert client.get(f"/api/files/{file_id}").json()["rows"][0] == {"title": "row 1.0"}


def test_file_of_a_request_whose_server_is_killed_is_not_shown_and_is_removed(
    hosts: Hosts, sqlite_url: str, bucket_settings: dict[str, str]
) -> None:
    doomed, client = hosts.api(HOLDFAST_FAULT="create/add_job")
    hosts.log_in()
    client.headers.update(hosts.headers)
    with pytest.raises(httpx2.TransportError):
        client.post("/api/jobs", files=ROWS, data={"pipeline": "lengths"})
    assert doomed.wait(30) == -signal.SIGKILL

    _, client = hosts.api()
    assert client.get("/api/files").json()["files"] == []
    assert len(asyncio.run(_keys(sqlite_url, bucket_settings, clear=True))) == 1
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as connection, connection:
        connection.execute("update holdfast_files set created_at = '2020-01-01T00:00:00.000Z'")
    assert asyncio.run(_keys(sqlite_url, bucket_settings, clear=True)) == []
