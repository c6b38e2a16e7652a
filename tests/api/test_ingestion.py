"""Files from a folder, an FTP server and a bucket become jobs: the same as an upload, each once."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from holdfast.features.ingestion.adapter_scans import AdapterScans, ScanReport
from holdfast.features.ingestion.adapters import Adapter
from holdfast.features.ingestion.places.contract import Arrived, Place
from holdfast.features.items.grid import write_export
from holdfast.files.bucket import BucketStore
from holdfast.stored_files import Written
from tests.api.server import ApiServer, ended, upload
from tests.command import HoldfastCommand
from tests.file_stores import bucket_of
from tests.fixtures import INCOMING
from tests.ftp import PASSWORD, FtpFolder, self_signed

ROWS = b"title\noak\nelm\nmissing\n"
NEVER = 86_400


@pytest.fixture
def incoming(tmp_path: Path) -> Path:
    folder = tmp_path / "incoming"
    folder.mkdir()
    return folder


@pytest.fixture
async def server(database_url: str, tmp_path: Path, incoming: Path) -> AsyncIterator[ApiServer]:
    roots = str(incoming)
    async with ApiServer(database_url, tmp_path / "server", file_roots=roots) as started:
        yield started


async def watch(admin: httpx2.AsyncClient, address: str, kind: str = "folder", **more: Any) -> None:
    """Adds an adapter that only `POST scan` scans, after its first look."""
    body = {"kind": kind, "address": address, "pipeline": "lengths", "settleSeconds": 0}
    reply = await admin.put("/api/ingestion/in", json=body | {"intervalSeconds": NEVER} | more)
    assert reply.status_code == 204, reply.text
    while not (await admin.get("/api/ingestion")).json()["adapters"][0]["scannedAt"]:
        await asyncio.sleep(0.02)


async def scan(client: httpx2.AsyncClient) -> dict[str, Any]:
    reply = await client.post("/api/ingestion/scan", json={"name": "in"})
    assert reply.status_code == 200, reply.text
    scanned: dict[str, Any] = reply.json()["scans"][0]
    return scanned


async def table(server: ApiServer, job_id: int) -> bytes:
    """What the grid shows and an export contains, with the rows as they came."""
    job = await server.parts.store.reads.job(job_id)
    path = server.folder / f"{job_id}.csv"
    await write_export(server.parts.console, job, path, "csv", with_input=True)
    return path.read_bytes()


async def uploaded(server: ApiServer, client: httpx2.AsyncClient) -> bytes:
    job_id = (await upload(client, ROWS.decode())).json()["id"]
    await ended(server, client, job_id)
    return await table(server, job_id)


async def test_file_in_a_folder_is_the_same_as_an_upload(server: ApiServer, incoming: Path) -> None:
    admin = await server.person("ada", "admin")
    await watch(admin, str(incoming))
    (incoming / "rows.csv").write_bytes(ROWS)
    (incoming / ".hidden.csv").write_bytes(ROWS)
    (incoming / "half.csv.part").write_bytes(ROWS)
    report = await scan(admin)
    assert len(report["taken"]) == 1, report
    job = await ended(server, admin, report["taken"][0])
    assert (job["name"], job["ownerId"]) == ("rows.csv", "ada")
    assert await table(server, job["id"]) == await uploaded(server, admin)
    assert (incoming / "done" / "rows.csv").read_bytes() == ROWS
    # The same content under another name is not worked on twice.
    (incoming / "again.csv").write_bytes(ROWS)
    second = await scan(admin)
    assert (second["taken"], second["duplicates"]) == ([], 1)
    files = (await admin.get("/api/ingestion/in/files")).json()["files"]
    assert [(each["name"], each["state"]) for each in files] == [
        ("again.csv", "DUPLICATE"), ("rows.csv", "TAKEN"),
    ]  # fmt: skip


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_files_that_cannot_be_read_are_set_aside_with_the_reason(
    server: ApiServer, incoming: Path
) -> None:
    admin = await server.person("ada", "admin")
    await watch(admin, str(incoming))
    (incoming / "paper.pdf").write_bytes(b"%PDF-1.7 rest")
    (incoming / "empty.csv").write_bytes(b"")
    (incoming / "rows.csv").write_bytes(ROWS)
    report = await scan(admin)
    assert (len(report["taken"]), report["refused"]) == (1, 2)
    assert sorted(path.name for path in (incoming / "failed").iterdir()) == [
        "empty.csv", "empty.csv.reason.txt", "paper.pdf", "paper.pdf.reason.txt",
    ]  # fmt: skip
    assert "PDF" in (incoming / "failed" / "paper.pdf.reason.txt").read_text()
    empty = (incoming / "failed" / "empty.csv.reason.txt").read_text()
    assert empty.startswith("empty.csv is empty. ")  # what is wrong, then what to do


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_only_whole_files_are_taken(server: ApiServer, incoming: Path) -> None:
    admin = await server.person("ada", "admin")
    await watch(admin, str(incoming), settleSeconds=3600)
    (incoming / "rows.csv").write_bytes(ROWS)
    assert ((await scan(admin))["waiting"], (await scan(admin))["taken"]) == (1, [])
    await watch(admin, str(incoming), marker=".done")
    assert (await scan(admin))["waiting"] == 1
    (incoming / "rows.csv.done").touch()
    assert len((await scan(admin))["taken"]) == 1
    assert [path.name for path in incoming.iterdir()] == ["done"]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_link_to_elsewhere_is_not_followed(
    server: ApiServer, incoming: Path, tmp_path: Path
) -> None:
    admin = await server.person("ada", "admin")
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "passwords.csv").write_bytes(ROWS)
    (incoming / "linked.csv").symlink_to(secret / "passwords.csv")
    (incoming / "place").symlink_to(secret)
    await watch(admin, str(incoming / "place"))
    assert "HOLDFAST_FILE_ROOTS" in (await scan(admin))["error"]
    await watch(admin, str(incoming))
    assert (await scan(admin))["taken"] == []


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("name", ["done", "failed"])
async def test_nothing_is_written_through_a_link(
    server: ApiServer, incoming: Path, tmp_path: Path, name: str
) -> None:
    """Whoever may write to the folder would choose what is written where."""
    admin = await server.person("ada", "admin")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (incoming / name).symlink_to(elsewhere)
    file = incoming / "rows"
    file.write_bytes(ROWS if name == "done" else b"%PDF-1.7 rest")
    await watch(admin, str(incoming))
    assert f"cannot be moved to {name}" in (await scan(admin))["error"]
    assert list(elsewhere.iterdir()) == [] and file.exists()


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_reason_replaces_no_file_behind_a_link(server: ApiServer, incoming: Path) -> None:
    admin = await server.person("ada", "admin")
    (incoming / "failed").mkdir()
    precious = incoming / ".precious"
    precious.write_text("precious")
    (incoming / "failed" / "rows.reason.txt").symlink_to(precious)
    (incoming / "rows").write_bytes(b"%PDF-1.7 rest")
    await watch(admin, str(incoming))
    await scan(admin)
    assert (incoming / "failed" / "rows").exists() and precious.read_text() == "precious"


async def test_name_that_is_not_utf_8_keeps_no_other_file_waiting(
    server: ApiServer, incoming: Path
) -> None:
    admin = await server.person("ada", "admin")
    for name, rows in ((b"a\xff.csv", b"title\noak\n"), (b"b.csv", b"title\nelm\n")):
        Path(os.fsdecode(os.fsencode(incoming) + b"/" + name)).write_bytes(rows)
    await watch(admin, str(incoming))
    report = await scan(admin)
    files = (await admin.get("/api/ingestion/in/files")).json()["files"]
    assert {file["state"] for file in files} == {"TAKEN"} and report["error"] is None
    assert sorted(file["name"] for file in files) == ["a\\udcff.csv", "b.csv"]


async def test_addresses_that_cannot_be_right_are_refused(server: ApiServer) -> None:
    admin = await server.person("ada", "admin")
    for kind, address in (
        ("ftp", "ftp://[x"),
        ("ftp", "ftp://host:99999/"),
        ("ftp", "https://host/"),
        ("folder", "/srv/\0"),
        ("folder", "srv"),
        ("s3", "/key"),
    ):
        body = {"kind": kind, "address": address, "pipeline": "lengths"}
        reply = await admin.put("/api/ingestion/in", json=body)
        assert reply.status_code == 422, (address, reply.text)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_marker_that_is_left_alone_itself_is_refused(server: ApiServer) -> None:
    admin = await server.person("ada", "admin")
    body = {"kind": "folder", "address": "/srv", "pipeline": "lengths", "marker": ".part"}
    reply = await admin.put("/api/ingestion/in", json=body)
    assert reply.status_code == 422 and "the marker cannot be .part" in reply.text


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("option", ["--every", "--settle"])
def test_endless_times_are_refused(holdfast_command: HoldfastCommand, option: str) -> None:
    refused = holdfast_command.run("ingest", "add", "in", "catalog", "/srv", option, "inf")
    assert refused.returncode == 1 and "between 0 seconds and a day" in refused.stderr


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_adapter_is_its_owners(server: ApiServer, incoming: Path) -> None:
    admin, ben = await server.person("ada", "admin"), await server.person("ben")
    await watch(admin, str(incoming), owner="ben")
    cleo = await server.person("cleo")
    (incoming / "rows.csv").write_bytes(ROWS)
    assert (await cleo.get("/api/ingestion")).json()["adapters"] == []
    assert (await cleo.post("/api/ingestion/scan", json={"name": "in"})).status_code == 404
    job_id = (await scan(ben))["taken"][0]
    assert (await ben.get(f"/api/jobs/{job_id}")).json()["ownerId"] == "ben"


@pytest.fixture
def ftp(tmp_path: Path) -> Iterator[FtpFolder]:
    folder = tmp_path / "ftp"
    folder.mkdir()
    with FtpFolder(folder) as started:
        yield started


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_file_on_an_ftp_server_is_the_same_as_an_upload(
    database_url: str, tmp_path: Path, ftp: FtpFolder
) -> None:
    settings = {"ingest_passwords": f"in={PASSWORD}"}
    async with ApiServer(database_url, tmp_path / "server", **settings) as server:
        admin = await server.person("ada", "admin")
        await watch(admin, ftp.address, "ftp")
        (ftp.folder / "rows.csv").write_bytes(ROWS)
        ftp.drops = 5
        dropped = await scan(admin)
        assert dropped["error"] and dropped["taken"] == []
        (ftp.folder / "paper.pdf").write_bytes(b"%PDF-1.7 rest")
        report = await scan(admin)
        assert (len(report["taken"]), report["refused"], report["error"]) == (1, 1, None)
        job = await ended(server, admin, report["taken"][0])
        assert await table(server, job["id"]) == await uploaded(server, admin)
    assert (ftp.folder / "done" / "rows.csv").read_bytes() == ROWS
    assert "PDF" in (ftp.folder / "failed" / "paper.pdf.reason.txt").read_text()


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_files_are_taken_over_tls_only_from_a_server_that_is_known(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, certificate = tmp_path / "ftps", self_signed(tmp_path / "server.pem", "127.0.0.1")
    folder.mkdir()
    (folder / "rows.csv").write_bytes(ROWS)
    settings = {"ingest_passwords": f"in={PASSWORD}"}
    with FtpFolder(folder, certificate) as ftp:
        async with ApiServer(database_url, tmp_path / "server", **settings) as server:
            admin = await server.person("ada", "admin")
            await watch(admin, ftp.address, "ftp")
            unknown = await scan(admin)
            assert "certificate verify failed" in unknown["error"] and not unknown["taken"]
            monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
            ftp.drops = 5
            dropped = await scan(admin)
            assert dropped["error"] and not dropped["taken"]
            report = await scan(admin)
            assert (len(report["taken"]), report["error"]) == (1, None)
    assert (folder / "done" / "rows.csv").read_bytes() == ROWS


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_bucket_without_rights_is_said(
    database_url: str, tmp_path: Path, bucket_settings: dict[str, str]
) -> None:
    settings = {name.removeprefix("HOLDFAST_").lower(): v for name, v in bucket_settings.items()}
    settings |= {"file_buckets": f"{INCOMING}/", "s3_secret_access_key": "not-the-right-secret"}
    settings.pop("files_bucket")
    async with ApiServer(database_url, tmp_path / "server", **settings) as server:
        admin = await server.person("ada", "admin")
        await watch(admin, INCOMING, "s3")
        report = await scan(admin)
    assert report["taken"] == [] and report["error"]
    assert "not-the-right-secret" not in report["error"]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_wrong_password_is_said_and_not_shown(
    database_url: str, tmp_path: Path, ftp: FtpFolder
) -> None:
    settings = {"ingest_passwords": "in=wrong-one"}
    async with ApiServer(database_url, tmp_path / "server", **settings) as server:
        admin = await server.person("ada", "admin")
        await watch(admin, ftp.address, "ftp")
        error = (await scan(admin))["error"]
    assert error.startswith("127.0.0.1: 530") and "wrong-one" not in error
    async with ApiServer(database_url, tmp_path / "other") as server:
        everything = await (await server.person("eve", "admin")).post("/api/ingestion/scan")
    assert everything.status_code == 200, everything.text
    assert "INGEST_PASSWORDS has no password" in everything.json()["scans"][0]["error"]


def own_bucket(bucket_settings: dict[str, str]) -> tuple[BucketStore, str, dict[str, str]]:
    """A part of the bucket for one test: the store, its address, and settings that allow it."""
    prefix = f"adapter-{uuid4().hex[:8]}"
    bucket = bucket_of(bucket_settings | {"HOLDFAST_FILES_PREFIX": prefix}, bucket=INCOMING)
    settings = {name.removeprefix("HOLDFAST_").lower(): v for name, v in bucket_settings.items()}
    address = f"{INCOMING}/{prefix}"
    return bucket, address, settings | {"file_buckets": f"{address}/"}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_file_in_a_bucket_is_the_same_as_an_upload(
    database_url: str, tmp_path: Path, bucket_settings: dict[str, str]
) -> None:
    bucket, address, settings = own_bucket(bucket_settings)
    async with ApiServer(database_url, tmp_path / "server", **settings) as server:
        admin = await server.person("ada", "admin")
        await watch(admin, address, "s3")
        await bucket.put("rows.csv", ROWS, max_bytes=1000)
        await bucket.put("paper.pdf", b"%PDF-1.7 rest", max_bytes=1000)
        report = await scan(admin)
        assert (len(report["taken"]), report["refused"], report["error"]) == (1, 1, None)
        job = await ended(server, admin, report["taken"][0])
        assert await table(server, job["id"]) == await uploaded(server, admin)
        keys = sorted([info.key async for info in bucket.list("")])
        assert keys == ["done/rows.csv", "failed/paper.pdf", "failed/paper.pdf.reason.txt"]
        await watch(admin, f"{INCOMING}/elsewhere", "s3")
        assert "not in a bucket" in (await scan(admin))["error"]


# Killed and raced.


class Killed(BaseException):
    """The process ends here."""


@dataclass(frozen=True, slots=True)
class FailingPlace:
    """Passes everything on, and is killed before or after one step."""

    place: Place
    step: str
    before: bool

    async def arrivals(self) -> list[Arrived]:
        return await self.place.arrivals()

    async def fetch(self, file: Arrived, target: Path, max_bytes: int) -> Written:
        return await self._killed("fetch", self.place.fetch(file, target, max_bytes))

    async def accept(self, file: Arrived) -> None:
        await self._killed("accept", self.place.accept(file))

    async def refuse(self, file: Arrived, reason: str) -> None:
        await self._killed("refuse", self.place.refuse(file, reason))

    async def clear(self, name: str) -> None:
        await self.place.clear(name)

    async def _killed(self, step: str, action: Any) -> Any:
        if step == self.step and self.before:
            action.close()
            raise Killed
        result = await action
        if step == self.step:
            raise Killed
        return result


STEPS = [("fetch", True), ("fetch", False), ("accept", True), ("accept", False)]


@pytest.mark.parametrize(("step", "before"), STEPS)
async def test_file_becomes_one_job_though_its_scanner_is_killed(
    server: ApiServer, incoming: Path, step: str, before: bool
) -> None:
    admin = await server.person("ada", "admin")
    await watch(admin, str(incoming))
    (incoming / "rows.csv").write_bytes(ROWS)
    scans = server.parts.scans
    adapter = await server.parts.console.adapters.named("in")

    def open_failing(adapter: Adapter) -> Place:
        return FailingPlace(scans.open_place(adapter), step, before)

    doomed = AdapterScans(scans.console, scans.new_jobs, open_failing, scans.log)
    with pytest.raises(Killed):
        await doomed.scan(adapter)
    assert (await scan(admin))["error"] is None
    jobs = (await admin.get("/api/jobs")).json()["jobs"]
    assert [job["name"] for job in jobs] == ["rows.csv"]
    assert (incoming / "done" / "rows.csv").read_bytes() == ROWS


async def test_two_scanners_take_each_file_once(server: ApiServer, incoming: Path) -> None:
    admin = await server.person("ada", "admin")
    await watch(admin, str(incoming))
    for number in range(6):
        (incoming / f"rows-{number}.csv").write_bytes(ROWS + f"row {number}\n".encode())
    adapter = await server.parts.console.adapters.named("in")
    scans = server.parts.scans

    async def race() -> list[ScanReport]:
        return [await scans.scan(adapter) for _ in range(3)]

    reports = [report for part in await asyncio.gather(race(), race()) for report in part]
    taken = [job_id for report in reports for job_id in report.taken]
    assert len(taken) == len(set(taken)) == 6
    assert len((await admin.get("/api/jobs")).json()["jobs"]) == 6
