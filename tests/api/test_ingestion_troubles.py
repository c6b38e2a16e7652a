"""Places with files that cannot be taken: they keep no other file waiting, and nothing is lost."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from holdfast.features.ingestion.adapter_scans import AdapterScans
from holdfast.features.ingestion.adapters import Adapter
from holdfast.features.ingestion.places import folder
from holdfast.features.ingestion.places.bucket import BucketPlace
from holdfast.features.ingestion.places.contract import FileTrouble, Place, numbered
from holdfast.features.ingestion.places.ftp import FtpPlace, FtpServer
from holdfast.kernel.database.driver import Transaction
from holdfast.kernel.worker.lost_workers import this_machine
from tests.api.server import ApiServer, ended, upload
from tests.api.test_ingestion import (
    ROWS,
    FailingPlace,
    Killed,
    own_bucket,
    scan,
    watch,
)
from tests.ftp import PASSWORD, USER, FtpFolder
from tests.pictures import png
from tests.store.checks import fetch, spelled

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
def incoming(tmp_path: Path) -> Path:
    folder = tmp_path / "incoming"
    folder.mkdir()
    return folder


@pytest.fixture
async def server(database_url: str, tmp_path: Path, incoming: Path) -> AsyncIterator[ApiServer]:
    limits = {"file_roots": str(incoming), "quota_jobs": "1"}
    async with ApiServer(database_url, tmp_path / "server", **limits) as started:
        yield started


def scans_at(server: ApiServer, make: Any) -> AdapterScans:
    """The server's own, at places that `make` wraps."""
    scans = server.parts.scans

    def open_place(adapter: Adapter) -> Place:
        place: Place = make(scans.open_place(adapter))
        return place

    return AdapterScans(scans.console, scans.new_jobs, open_place, scans.log)


async def execute(change: str, tx: Transaction) -> None:
    await tx.execute(change, {})


async def states(admin: Any) -> dict[str, str]:
    files = (await admin.get("/api/ingestion/in/files")).json()["files"]
    return {file["name"]: file["state"] for file in files}


@on_sqlite
async def test_file_that_cannot_be_moved_keeps_no_other_waiting(
    server: ApiServer, incoming: Path
) -> None:
    admin = await server.person("ada", "admin")
    await watch(admin, str(incoming))
    (incoming / "done").write_text("not a folder")
    (incoming / "a.csv").write_bytes(ROWS)
    (incoming / "b.csv").write_bytes(ROWS)
    report = await scan(admin)
    assert "cannot be moved to done" in report["error"]
    assert await states(admin) == {"a.csv": "TAKEN", "b.csv": "DUPLICATE", "done": "REFUSED"}


@on_sqlite
async def test_long_names_are_taken_and_told_apart(server: ApiServer, incoming: Path) -> None:
    """Of bytes that are not UTF-8, the name that is stored is six times as long."""
    admin = await server.person("ada", "admin")
    await watch(admin, str(incoming))
    file = Path(os.fsdecode(os.fsencode(incoming) + b"/" + b"\xff" * 240 + b".csv"))
    file.write_bytes(ROWS)
    report = await scan(admin)
    assert (len(report["taken"]), report["error"]) == (1, None)
    # Another one of that name, after the first was moved away.
    file.write_bytes(b"nothing\n")
    assert (await scan(admin))["refused"] == 1


@on_sqlite
async def test_marker_of_a_file_that_was_taken_marks_no_other(
    server: ApiServer, incoming: Path
) -> None:
    """The scanner is killed after it moved the file, and its sender begins with the next one."""
    admin = await server.person("ada", "admin")
    await watch(admin, str(incoming), marker=".done")
    (incoming / "rows.csv").write_bytes(ROWS)
    (incoming / "rows.csv.done").touch()
    adapter = await server.parts.console.adapters.named("in")
    doomed = scans_at(server, lambda place: FailingPlace(place, "accept", False))
    with pytest.raises(Killed):
        await doomed.scan(adapter)
    (incoming / "rows.csv").write_bytes(b"title\nhalf of")
    report = await scan(admin)
    assert (report["taken"], report["waiting"]) == ([], 1)


@on_sqlite
async def test_file_that_was_set_aside_and_put_back_is_looked_at_again(
    server: ApiServer, incoming: Path
) -> None:
    """A limit may have been raised since."""
    admin = await server.person("ada", "admin")
    await watch(admin, str(incoming))
    (incoming / "paper.pdf").write_bytes(b"%PDF-1.7 rest")
    assert (await scan(admin))["refused"] == 1
    (incoming / "failed" / "paper.pdf").rename(incoming / "paper.pdf")
    assert (await scan(admin))["refused"] == 1
    assert len((await admin.get("/api/ingestion/in/files")).json()["files"]) == 2


@on_sqlite
async def test_file_with_the_name_size_and_time_of_an_earlier_one_is_taken(
    server: ApiServer, incoming: Path
) -> None:
    """FTP servers and buckets know the time to the second only, or not at all."""
    admin = await server.person("ada", "admin")
    await watch(admin, str(incoming))
    for rows in (b"title\noak\n", b"title\nelm\n"):
        (incoming / "rows.csv").write_bytes(rows)
        os.utime(incoming / "rows.csv", (1, 1))
        (job_id,) = (await scan(admin))["taken"]
        await ended(server, admin, job_id)
    assert (incoming / "done" / "rows-2.csv").read_bytes() == b"title\nelm\n"


@on_sqlite
async def test_name_of_the_greatest_length_is_moved_again_and_again(
    server: ApiServer, incoming: Path
) -> None:
    admin = await server.person("ada", "admin")
    await watch(admin, str(incoming))
    file = incoming / ("é" * 125 + "x.csv")
    for content in (b"%PDF-1.7 first", b"%PDF-1.7 second"):
        file.write_bytes(content)
        report = await scan(admin)
        assert (report["refused"], report["error"]) == (1, None)
    assert sorted(path.name for path in (incoming / "failed").iterdir()) == [
        "é" * 122 + ".reason.txt", "é" * 124 + "-2.csv", file.name,
    ]  # fmt: skip


@on_sqlite
async def test_file_that_is_deleted_while_the_folder_is_listed_keeps_no_other_waiting(
    server: ApiServer, incoming: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = await server.person("ada", "admin")
    await watch(admin, str(incoming))
    for name in ("a.csv", "b.csv"):
        (incoming / name).write_bytes(ROWS)

    def is_wanted(name: str) -> bool:
        (incoming / "a.csv").unlink(missing_ok=True)
        return name.endswith(".csv")

    monkeypatch.setattr(folder, "is_wanted", is_wanted)
    report = await scan(admin)
    assert (len(report["taken"]), report["error"]) == (1, None)


@on_sqlite
async def test_file_that_is_replaced_while_the_earlier_one_is_moved_is_taken_too(
    server: ApiServer, incoming: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = await server.person("ada", "admin")
    await watch(admin, str(incoming))
    (incoming / "rows.csv").write_bytes(ROWS)

    def numbered(name: str, number: int) -> str:
        (incoming / "rows.csv").write_bytes(b"title\nelm\n")
        return name

    with monkeypatch.context() as patch:
        patch.setattr(folder, "numbered", numbered)
        assert len((await scan(admin))["taken"]) == 1
    assert (incoming / "rows.csv").read_bytes() == b"title\nelm\n"


@on_sqlite
async def test_files_are_moved_to_a_folder_on_another_device(
    server: ApiServer, incoming: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = await server.person("ada", "admin")
    await watch(admin, str(incoming))
    (incoming / "rows.csv").write_bytes(ROWS)
    rename = os.rename

    def rename_on_one_device(*paths: Any, **folders: Any) -> None:
        if set(folders) == {"dst_dir_fd"}:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        rename(*paths, **folders)

    monkeypatch.setattr(os, "rename", rename_on_one_device)
    report = await scan(admin)
    assert (len(report["taken"]), report["error"]) == (1, None)
    assert [path.name for path in incoming.iterdir()] == ["done"]
    assert {path.name: path.read_bytes() for path in (incoming / "done").iterdir()} == {
        "rows.csv": ROWS
    }


async def test_clock_that_was_set_back_stops_no_adapter(server: ApiServer, incoming: Path) -> None:
    """Its scanner was killed before that, too."""
    admin = await server.person("ada", "admin")
    await watch(admin, str(incoming), settleSeconds=1)
    (incoming / "rows.csv").write_bytes(ROWS)
    assert (await scan(admin))["waiting"] == 1
    scanner = await asyncio.create_subprocess_exec("true")
    await scanner.wait()
    workers = server.parts.store.workers
    await workers.add_worker("killed", "host", scanner.pid, [], machine=this_machine())
    for change in (
        "update adapter_files set seen_at = @after(7200)",
        "update adapters set token = 'killed', scanned_at = null,"
        " due_at = @after(interval_seconds + 7200)",
    ):
        whole = spelled(server.parts.store, change)
        await server.parts.store.database.write("test", partial(execute, whole))
    while not (adapter := (await admin.get("/api/ingestion")).json()["adapters"][0])["scannedAt"]:
        await asyncio.sleep(0.02)
    assert adapter["error"] is None
    while (await states(admin))["rows.csv"] == "WAITING":
        await scan(admin)
    assert await states(admin) == {"rows.csv": "TAKEN"}


@on_sqlite
async def test_image_that_has_to_wait_leaves_one_list(server: ApiServer, incoming: Path) -> None:
    admin = await server.person("ada", "admin")
    await watch(admin, str(incoming))
    assert (await upload(admin, ROWS.decode())).status_code == 202
    (incoming / "oak.png").write_bytes(png())
    for _ in range(3):
        assert "unfinished jobs" in (await scan(admin))["error"]
    files = await fetch(server.parts.store, "select kind from files")
    assert sorted(row[0] for row in files) == ["images", "import", "upload"]


@on_sqlite
async def test_name_in_a_bucket_that_is_not_a_key_keeps_no_other_waiting(
    database_url: str, tmp_path: Path, bucket_settings: dict[str, str]
) -> None:
    import obstore

    bucket, address, settings = own_bucket(bucket_settings)
    async with ApiServer(database_url, tmp_path / "server", **settings) as server:
        admin = await server.person("ada", "admin")
        await watch(admin, address, "s3")
        await obstore.put_async(bucket._store, "a" * 220 + ".csv", ROWS)
        await bucket.put("rows.csv", ROWS, max_bytes=1000)
        report = await scan(admin)
        assert len(report["taken"]) == 1 and "is not a key" in report["error"]


async def test_object_that_is_replaced_while_the_earlier_one_is_moved_is_not_deleted(
    bucket_settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket, _, _ = own_bucket(bucket_settings)
    await bucket.put("rows.csv", ROWS, max_bytes=1000)
    copy = bucket.copy

    async def copy_and_replace(key: str, target: str) -> None:
        await copy(key, target)
        await bucket.put("rows.csv", b"title\n", max_bytes=1000)

    monkeypatch.setattr(bucket, "copy", copy_and_replace)
    place = BucketPlace(bucket)
    (file,) = await place.arrivals()
    await place.accept(file)
    assert [(info.key, info.size) async for info in bucket.list("")] == [("rows.csv", 6)]


async def test_objects_of_one_size_and_second_are_told_apart(
    bucket_settings: dict[str, str],
) -> None:
    bucket, _, _ = own_bucket(bucket_settings)
    identities = set()
    for number in range(9):
        await bucket.put("rows.csv", f"title\n{number}\n".encode(), max_bytes=1000)
        identities |= {file.identity for file in await BucketPlace(bucket).arrivals()}
    assert len(identities) == 9


def place_of(ftp: FtpFolder) -> FtpPlace:
    return FtpPlace(FtpServer("127.0.0.1", ftp.port, USER, "", False, PASSWORD))


async def test_file_that_is_replaced_while_it_is_read_is_not_taken(tmp_path: Path) -> None:
    folder = tmp_path / "ftp"
    folder.mkdir()
    (folder / "rows.csv").write_bytes(ROWS)
    with FtpFolder(folder) as ftp:
        place = place_of(ftp)
        (file,) = await place.arrivals()
        ftp.read = lambda: os.utime(folder / "rows.csv", (1, 1))
        with pytest.raises(FileTrouble, match="changed while it was read"):
            await place.fetch(file, tmp_path / "copy", 1000)


async def test_name_on_an_ftp_server_may_be_any_and_taken_a_thousand_times(tmp_path: Path) -> None:
    folder = tmp_path / "ftp"
    folder.mkdir()
    for name in (b"caf\xe9.csv", "caf\u00e9.csv".encode()):
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_bytes(ROWS)
    (folder / "done").mkdir()
    for number in range(1, 1001):
        (folder / "done" / numbered("caf\u00e9.csv", number)).touch()
    with FtpFolder(folder) as ftp:
        place = place_of(ftp)
        files = await place.arrivals()
        assert sorted(file.shown for file in files) == ["caf\\udce9.csv", "caf\u00e9.csv"]
        for number, file in enumerate(files):
            await place.fetch(file, tmp_path / str(number), 1000)
            await place.accept(file)
    assert len(list((folder / "done").iterdir())) == 1002
