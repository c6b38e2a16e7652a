"""Stored files and exports: what they are and whose. Their bytes lie in the files folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from holdfast.errors import NotThere
from holdfast.store.audit import add_audit
from holdfast.store.database import Database
from holdfast.store.driver import Row, Transaction
from holdfast.store.instants import parse_instant
from holdfast.store.request_table import RequestKey, note_made

_LAST_ID = 2**62


@dataclass(frozen=True, slots=True)
class NewFile:
    owner_id: str
    name: str
    kind: str  # "upload": ours, in the files folder; "reference": where the server's owner keeps it
    path: str
    size: int
    sha256: str
    detected: Mapping[str, Any]
    request: RequestKey | None = None


@dataclass(frozen=True, slots=True)
class StoredFile:
    id: int
    owner_id: str
    name: str
    kind: str
    path: str
    size: int
    sha256: str
    detected: Mapping[str, Any]
    created_at: datetime | None


@dataclass(frozen=True, slots=True)
class NewExport:
    owner_id: str
    job_id: int
    format: str
    statuses: Sequence[str]
    with_input: bool
    narrowed: Mapping[str, Any] = field(default_factory=dict)  # code, since, until, values
    request: RequestKey | None = None


@dataclass(frozen=True, slots=True)
class Export:
    id: int
    owner_id: str
    job_id: int
    format: str
    statuses: tuple[str, ...]
    with_input: bool
    state: str  # QUEUED, RUNNING, DONE, FAILED
    partial: bool  # the job still ran when it was written
    rows_count: int
    size: int | None
    notes: tuple[str, ...]
    error: str | None
    created_at: datetime | None
    finished_at: datetime | None
    narrowed: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Written:
    """How an export ended."""

    state: str
    rows: int
    partial: bool = False
    size: int | None = None
    notes: Sequence[str] = ()
    error: str | None = None


class FileTable:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def add_file(self, new: NewFile) -> int:
        params = {
            "owner_id": new.owner_id,
            "name": new.name,
            "kind": new.kind,
            "path": new.path,
            "size": new.size,
            "sha256": new.sha256,
            "detected": orjson.dumps(dict(new.detected)).decode(),
        }

        async def body(tx: Transaction) -> int:
            rows = await tx.take("add_file", params)
            told = {"name": new.name, "size": new.size, "sha256": new.sha256}
            await add_audit(tx, new.owner_id, "file.stored", None, str(rows[0][0]), told)
            await note_made(tx, new.request, rows[0][0])
            return int(rows[0][0])

        return await self._database.write("add_file", body)

    async def file(self, file_id: int, scope: str | None = None) -> StoredFile:
        rows = await self._database.fetch("file", {"id": file_id, "scope": scope})
        if not rows:
            raise NotThere(f"there is no file {file_id}", "GET /api/files lists yours.")
        return _file(rows[0])

    async def files(
        self, scope: str | None, limit: int, before: int | None = None
    ) -> list[StoredFile]:
        """The newest first; of one owner, or of all."""
        rows = await self._newest("files", scope, limit, before)
        return [_file(row) for row in rows]

    async def add_export(self, new: NewExport) -> int:
        async def body(tx: Transaction) -> int:
            export_id = await insert_export(tx, new)
            await note_made(tx, new.request, export_id)
            return export_id

        return await self._database.write("add_export", body)

    async def export(self, export_id: int, scope: str | None = None) -> Export:
        rows = await self._database.fetch("export", {"id": export_id, "scope": scope})
        if not rows:
            raise NotThere(f"there is no export {export_id}", "GET /api/exports lists yours.")
        return _export(rows[0])

    async def exports(
        self, scope: str | None, limit: int, before: int | None = None
    ) -> list[Export]:
        return [_export(row) for row in await self._newest("exports", scope, limit, before)]

    async def exports_to_do(self) -> list[int]:
        return [row[0] for row in await self._database.fetch("exports_to_do")]

    async def lease_export(self, export_id: int, worker: str, seconds: float) -> Export | None:
        params = {"id": export_id, "worker": worker, "seconds": seconds}

        async def body(tx: Transaction) -> Export | None:
            rows = await tx.take("lease_export", params)
            return _export(rows[0]) if rows else None

        return await self._database.write("lease_export", body)

    async def renew_export(self, export_id: int, worker: str, rows: int, seconds: float) -> bool:
        params = {"id": export_id, "worker": worker, "rows": rows, "seconds": seconds}

        async def body(tx: Transaction) -> bool:
            return bool(await tx.take("renew_export", params))

        return await self._database.write("renew_export", body, relaxed=True)

    async def finish_export(self, export_id: int, worker: str, written: Written) -> bool:
        """False when another took it over."""
        params = {
            "id": export_id,
            "worker": worker,
            "state": written.state,
            "partial": int(written.partial),
            "rows": written.rows,
            "size": written.size,
            "notes": orjson.dumps(list(written.notes)).decode(),
            "error": written.error,
        }

        async def body(tx: Transaction) -> bool:
            return bool(await tx.take("finish_export", params))

        return await self._database.write("finish_export", body)

    async def _newest(
        self, query: str, scope: str | None, limit: int, before: int | None
    ) -> list[Row]:
        params = {"limit": limit, "before": before or _LAST_ID}
        if scope is None:
            return await self._database.fetch(query, params)
        return await self._database.fetch(f"{query}_of_owner", {**params, "scope": scope})


async def insert_export(tx: Transaction, new: NewExport) -> int:
    params = {
        "owner_id": new.owner_id,
        "job_id": new.job_id,
        "format": new.format,
        "statuses": orjson.dumps(list(new.statuses)).decode(),
        "narrowed": orjson.dumps(dict(new.narrowed)).decode(),
        "with_input": int(new.with_input),
    }
    export_id = int((await tx.take("add_export", params))[0][0])
    told = {"format": new.format, "statuses": list(new.statuses), **new.narrowed}
    await add_audit(tx, new.owner_id, "export", new.job_id, str(export_id), told)
    return export_id


def _file(row: Row) -> StoredFile:
    values = [*row]
    values[7], values[8] = orjson.loads(row[7]), parse_instant(row[8])
    return StoredFile(*values)


def _export(row: Row) -> Export:
    values = [*row]
    values[4], values[10] = tuple(orjson.loads(row[4])), tuple(orjson.loads(row[10]))
    values[5], values[7] = bool(row[5]), bool(row[7])
    values[12], values[13] = parse_instant(row[12]), parse_instant(row[13])
    values[14] = orjson.loads(row[14])
    return Export(*values)
