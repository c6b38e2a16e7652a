"""Exports: what people requested, and which process writes them.

Their bytes are in the file store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from holdfast.errors import NotThere
from holdfast.features.accounts.quotas import NO_LIMITS, Amounts, require_room
from holdfast.kernel.arrivals.idempotency import RequestKey, note_made
from holdfast.kernel.database.database import Database, verb
from holdfast.kernel.database.driver import Row, Transaction
from holdfast.kernel.database.rows import LAST_ID, fields_of
from holdfast.kernel.jobs.audit import add_audit
from holdfast.model import JobState


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
    partial: bool  # whether the job still ran when it was written
    rows_count: int
    size: int | None
    notes: tuple[str, ...]
    error: str | None
    created_at: datetime | None
    finished_at: datetime | None
    narrowed: Mapping[str, Any]
    key: str | None  # its key in the file store, once it is DONE
    sha256: str | None


@dataclass(frozen=True, slots=True)
class Written:
    """How an export ended."""

    state: str
    rows: int
    partial: bool = False
    size: int | None = None
    notes: Sequence[str] = ()
    error: str | None = None
    key: str | None = None
    sha256: str | None = None


class Exports:
    """Reads and changes exports. A scope is an owner's name; None means all owners."""

    def __init__(self, database: Database, limits: Amounts = NO_LIMITS) -> None:
        self._database = database
        self._limits = limits

    @verb
    async def add_export(self, tx: Transaction, new: NewExport) -> int:
        await require_room(tx, self._limits, new.owner_id, exports=1, bytes=1)
        export_id = await insert_export(tx, new)
        await note_made(tx, new.request, export_id)
        return export_id

    async def export(self, export_id: int, scope: str | None = None) -> Export:
        rows = await self._database.fetch("export", {"id": export_id, "scope": scope})
        if not rows:
            raise NotThere(f"there is no export {export_id}", "GET /api/exports lists yours.")
        return _export(rows[0])

    async def page(self, scope: str | None, limit: int, before: int | None = None) -> list[Export]:
        """Lists exports, the newest first."""
        params = {"limit": limit, "before": before or LAST_ID}
        if scope is None:
            rows = await self._database.fetch("exports", params)
        else:
            rows = await self._database.fetch("exports_of_owner", {**params, "scope": scope})
        return [_export(row) for row in rows]

    async def to_do(self) -> list[int]:
        return [row[0] for row in await self._database.fetch("exports_to_do")]

    @verb
    async def lease_export(self, tx: Transaction, export_id: int, worker: str) -> Export | None:
        rows = await tx.take("lease_export", {"id": export_id, "worker": worker})
        return _export(rows[0]) if rows else None

    @verb(relaxed=True)
    async def note_rows(self, tx: Transaction, export_id: int, worker: str, rows: int) -> bool:
        """Notes how far the export is; returns False if another process took it over."""
        params = {"id": export_id, "worker": worker, "rows": rows}
        return bool(await tx.take("note_rows", params))

    @verb
    async def finish_export(
        self, tx: Transaction, export_id: int, worker: str, written: Written
    ) -> bool:
        """Ends the export; returns False if another process took it over."""
        params = {
            "id": export_id,
            "worker": worker,
            "state": written.state,
            "partial": int(written.partial),
            "rows": written.rows,
            "size": written.size,
            "notes": orjson.dumps(list(written.notes)).decode(),
            "error": written.error,
            "key": written.key,
            "sha256": written.sha256,
        }
        return bool(await tx.take("finish_export", params))


async def insert_export(tx: Transaction, new: NewExport) -> int:
    """Inserts an export.

    A deletion of the job waits for this transaction, and deletes what it writes."""
    jobs = await tx.fetch("share_job", {"job_id": new.job_id})
    if not jobs or jobs[0]["state"] == JobState.DELETING:
        raise NotThere(
            f"there is no job {new.job_id}, or it is being deleted", "GET /api/jobs lists yours."
        )
    params = {
        "owner_id": new.owner_id,
        "job_id": new.job_id,
        "format": new.format,
        "statuses": orjson.dumps(list(new.statuses)).decode(),
        "narrowed": orjson.dumps(dict(new.narrowed)).decode(),
        "with_input": int(new.with_input),
    }
    export_id = int((await tx.take("add_export", params))[0][0])
    detail = {"format": new.format, "statuses": list(new.statuses), **new.narrowed}
    await add_audit(tx, new.owner_id, "export", new.job_id, str(export_id), detail)
    return export_id


def _export(row: Row) -> Export:
    fields = fields_of(row)
    return Export(
        **fields
        | {
            "statuses": tuple(orjson.loads(fields["statuses"])),
            "notes": tuple(orjson.loads(fields["notes"])),
            "narrowed": orjson.loads(fields["narrowed"]),
            "with_input": bool(fields["with_input"]),
            "partial": bool(fields["partial"]),
        }
    )
