"""Adapters: places where files arrive. Each has an owner, who gets the jobs over its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

import orjson

from holdfast.errors import NotThere, UserError
from holdfast.features.ingestion.places.contract import is_wanted
from holdfast.kernel.database.database import Database, verb
from holdfast.kernel.database.driver import Row, Transaction
from holdfast.kernel.database.instants import parse_instant
from holdfast.kernel.jobs.audit import add_audit
from holdfast.kernel.jobs.jobs import NewJob, create_job

LONGEST_NAME = 100
_LONGEST_TIME = 86_400.0
_SCHEMES = ("ftp", "ftps")


class AdapterKind(StrEnum):
    FOLDER = "folder"
    FTP = "ftp"
    S3 = "s3"


class FileState(StrEnum):
    WAITING = "WAITING"  # seen, but not known to be complete yet
    STORED = "STORED"  # copied to the file store
    TAKEN = "TAKEN"  # its job is created
    DUPLICATE = "DUPLICATE"  # the same content came before
    REFUSED = "REFUSED"  # set aside, with the reason


@dataclass(frozen=True, slots=True)
class NewAdapter:
    """An adapter to be set.

    `marker`: a suffix; a file is complete once a second one with it is there. Without one, a file
    is complete when it did not change for `settle_seconds`."""

    name: str
    kind: AdapterKind
    address: str
    pipeline: str
    owner: str
    options: Mapping[str, Any] = field(default_factory=dict)
    marker: str = ""
    settle_seconds: float = 5.0
    interval_seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class Adapter:
    id: int
    name: str
    kind: AdapterKind
    address: str
    pipeline: str
    owner: str
    options: Mapping[str, Any]
    marker: str
    settle_seconds: float
    interval_seconds: float
    scanned_at: datetime | None
    error: str | None
    scanning: bool


@dataclass(frozen=True, slots=True)
class AdapterFile:
    id: int
    name: str
    size: int
    state: FileState
    job_id: int | None
    error: str | None
    seen_at: datetime | None
    updated_at: datetime | None


@dataclass(slots=True)
class KnownFile:
    """What is known about a file at a place. `seconds`: how long it has been unchanged."""

    id: int
    state: FileState
    sha256: str | None
    file_id: int | None
    job_id: int | None
    error: str | None
    seconds: float


class Adapters:
    def __init__(self, database: Database) -> None:
        self._database = database

    @verb
    async def set_adapter(self, tx: Transaction, new: NewAdapter, actor: str) -> int:
        """Adds the adapter, or replaces one of the same name; the files it took before stay
        known."""
        check_adapter(new)
        params = {
            "name": new.name,
            "kind": str(new.kind),
            "address": new.address,
            "pipeline": new.pipeline,
            "owner_id": new.owner,
            "options": orjson.dumps(dict(new.options)).decode(),
            "marker": new.marker,
            "settle_seconds": new.settle_seconds,
            "interval_seconds": new.interval_seconds,
        }
        rows = await tx.take("set_adapter", params)
        detail = {"kind": str(new.kind), "address": new.address, "pipeline": new.pipeline}
        await add_audit(tx, actor, "adapter.set", None, new.name, detail)
        return int(rows[0][0])

    @verb
    async def remove_adapter(self, tx: Transaction, name: str, actor: str) -> None:
        """Removes the adapter; the jobs that it started remain."""
        rows = await tx.fetch("adapter_named", {"name": name, "scope": None})
        if not rows:
            raise unknown_adapter(name)
        await tx.fetch("hold_adapter", {"id": rows[0]["id"]})
        await tx.run("remove_adapter_files", {"id": rows[0]["id"]})
        await tx.run("remove_adapter", {"id": rows[0]["id"]})
        await add_audit(tx, actor, "adapter.remove", None, name, {})

    async def all(self, scope: str | None = None) -> list[Adapter]:
        rows = await self._database.fetch("adapters", {"scope": scope})
        return [_adapter(row) for row in rows]

    async def named(self, name: str, scope: str | None = None) -> Adapter:
        rows = await self._database.fetch("adapter_named", {"name": name, "scope": scope})
        if not rows:
            raise unknown_adapter(name)
        return _adapter(rows[0])

    async def files(self, adapter: Adapter, limit: int) -> list[AdapterFile]:
        params = {"adapter_id": adapter.id, "limit": limit}
        return [_file(row) for row in await self._database.fetch("files_of_adapter", params)]

    async def due(self, pipelines: Sequence[str]) -> list[Adapter]:
        """Returns the adapters that are due and that no scanner holds."""
        rows = await self._database.fetch("due_adapters", {"pipelines": list(pipelines)})
        return [_adapter(row) for row in rows]

    # Scanning. The process that holds the token of an adapter is its only scanner.

    @verb
    async def lease_adapter(self, tx: Transaction, adapter: Adapter, token: str) -> bool:
        return bool(await tx.take("lease_adapter", {"id": adapter.id, "token": token}))

    async def is_scanner(self, adapter: Adapter, token: str) -> bool:
        params = {"id": adapter.id, "token": token}
        return bool(await self._database.fetch("is_scanner", params))

    @verb
    async def release_adapter(
        self, tx: Transaction, adapter: Adapter, token: str, error: str | None
    ) -> None:
        await tx.run("release_adapter", {"id": adapter.id, "token": token, "error": error})

    @verb
    async def see_file(
        self, tx: Transaction, adapter: Adapter, identity: str, name: str, size: int
    ) -> KnownFile:
        if not await tx.fetch("hold_adapter", {"id": adapter.id}):
            raise unknown_adapter(adapter.name)  # it was removed during the scan
        key = {"adapter_id": adapter.id, "identity": identity}
        await tx.run("see_adapter_file", {**key, "name": name, "size": size})
        row = (await tx.fetch("adapter_file", key))[0]
        return KnownFile(
            row["id"],
            FileState(row["state"]),
            row["sha256"],
            row["file_id"],
            row["job_id"],
            row["error"],
            float(row["seconds"]),
        )

    async def with_content(self, adapter: Adapter, file: KnownFile) -> Row | None:
        """Returns an earlier file of the adapter with the same content whose job was created."""
        params = {"adapter_id": adapter.id, "sha256": file.sha256, "id": file.id}
        rows = await self._database.fetch("adapter_file_with_content", params)
        return rows[0] if rows else None

    @verb
    async def note_file(self, tx: Transaction, file: KnownFile, token: str) -> bool:
        """Notes the file's state; returns False if another scanner has the adapter now."""
        return bool(await tx.take("note_adapter_file", {**_noted(file), "token": token}))

    @verb
    async def forget_file(self, tx: Transaction, file: KnownFile, token: str) -> None:
        """Forgets a file that was moved away: another one with its name, size and time is new, or
        was put back, and is looked at again."""
        await tx.run("forget_adapter_file", {"id": file.id, "token": token})

    @verb
    async def start_job(
        self, tx: Transaction, file: KnownFile, new: NewJob, token: str
    ) -> int | None:
        """Creates the job of a file and notes it, in one transaction: a file has one job, whichever
        process is killed. Returns None if another scanner was first."""
        if not await tx.fetch("hold_adapter_file", {"id": file.id, "token": token}):
            return None
        job_id = await create_job(tx, new, new.owner_id)
        taken = _noted(file) | {"state": str(FileState.TAKEN), "job_id": job_id, "token": token}
        await tx.take("note_adapter_file", taken)
        return job_id


def check_adapter(new: NewAdapter) -> None:
    if not new.name or len(new.name) > LONGEST_NAME or not new.name.isprintable():
        raise UserError("the adapter needs a name", "For example: incoming.")
    if not (0 <= new.settle_seconds <= _LONGEST_TIME and 0 < new.interval_seconds <= _LONGEST_TIME):
        raise UserError("the times of an adapter are between 0 seconds and a day")
    if new.marker and not new.marker.startswith("."):
        raise UserError(f"{new.marker!r} is not a suffix", "For example: .done")
    if new.marker and not is_wanted(f"file{new.marker}"):
        raise UserError(
            f"the marker cannot be {new.marker}: such files are ignored", "For example: .done"
        )
    match new.kind:
        case AdapterKind.FTP:
            _check_server(new.address)
        case AdapterKind.S3:
            if not new.address.partition("/")[0]:
                raise UserError("the address of a bucket is BUCKET or BUCKET/PREFIX")
        case AdapterKind.FOLDER:
            if not new.address.startswith("/"):
                raise UserError(f"{new.address!r} is not a full path", "It begins with /.")


def _check_server(address: str) -> None:
    try:
        parts = urlsplit(address)
        usable = parts.scheme in _SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an address or a port that is impossible
        usable = False
    if not usable:
        raise UserError(f"{address!r} is not an FTP address", "E.g. ftps://user@host/folder")
    if parts.password:
        raise UserError(
            "the address has a password", "Put it into HOLDFAST_INGEST_PASSWORDS instead."
        )


def unknown_adapter(name: str) -> NotThere:
    return NotThere(f"there is no adapter {name!r}", "`holdfast ingest list` lists them.")


def _noted(file: KnownFile) -> dict[str, Any]:
    return {
        "id": file.id,
        "state": str(file.state),
        "sha256": file.sha256,
        "file_id": file.file_id,
        "job_id": file.job_id,
        "error": file.error,
    }


def _adapter(row: Row) -> Adapter:
    return Adapter(
        row["id"],
        row["name"],
        AdapterKind(row["kind"]),
        row["address"],
        row["pipeline"],
        row["owner_id"],
        orjson.loads(row["options"]),
        row["marker"],
        float(row["settle_seconds"]),
        float(row["interval_seconds"]),
        parse_instant(row["scanned_at"]),
        row["error"],
        bool(row["scanning"]),
    )


def _file(row: Row) -> AdapterFile:
    return AdapterFile(
        row["id"],
        row["name"],
        row["size"],
        FileState(row["state"]),
        row["job_id"],
        row["error"],
        parse_instant(row["seen_at"]),
        parse_instant(row["updated_at"]),
    )
