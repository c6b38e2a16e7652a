"""Stored files: what they are and whose. Their bytes are in the files folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from holdfast.errors import NotThere
from holdfast.store.audit import add_audit
from holdfast.store.database import Database
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
    """A scope is an owner's name; None means everybody's."""

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
