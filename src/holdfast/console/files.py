"""Stored files: what they are and whose. Their bytes are in the files folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from holdfast.console.quotas import NO_LIMITS, Amounts, require_room
from holdfast.errors import NotThere
from holdfast.store.audit import add_audit
from holdfast.store.database import Database, verb
from holdfast.store.driver import Row, Transaction
from holdfast.store.idempotency import RequestKey, note_made
from holdfast.store.rows import LAST_ID, fields_of


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


class Files:
    """A scope is an owner's name; None means all owners."""

    def __init__(self, database: Database, limits: Amounts = NO_LIMITS) -> None:
        self._database = database
        self._limits = limits

    @verb
    async def add_file(self, tx: Transaction, new: NewFile) -> int:
        size = new.size if new.kind != "reference" else 0
        await require_room(tx, self._limits, new.owner_id, files=1, bytes=size)
        params = {
            "owner_id": new.owner_id,
            "name": new.name,
            "kind": new.kind,
            "path": new.path,
            "size": new.size,
            "sha256": new.sha256,
            "detected": orjson.dumps(dict(new.detected)).decode(),
        }
        rows = await tx.take("add_file", params)
        detail = {"name": new.name, "size": new.size, "sha256": new.sha256}
        await add_audit(tx, new.owner_id, "file.stored", None, str(rows[0][0]), detail)
        await note_made(tx, new.request, rows[0][0])
        return int(rows[0][0])

    async def file(self, file_id: int, scope: str | None = None) -> StoredFile:
        rows = await self._database.fetch("file", {"id": file_id, "scope": scope})
        if not rows:
            raise NotThere(f"there is no file {file_id}", "GET /api/files lists yours.")
        return _file(rows[0])

    async def page(
        self, scope: str | None, limit: int, before: int | None = None
    ) -> list[StoredFile]:
        """The newest first."""
        params = {"limit": limit, "before": before or LAST_ID}
        if scope is None:
            rows = await self._database.fetch("files", params)
        else:
            rows = await self._database.fetch("files_of_owner", {**params, "scope": scope})
        return [_file(row) for row in rows]


def _file(row: Row) -> StoredFile:
    fields = fields_of(row)
    return StoredFile(**fields | {"detected": orjson.loads(fields["detected"])})
