"""Stored files: what they are and who owns them. Their bytes are in the file store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class NewFile:
    owner_id: str
    name: str
    kind: str  # how it came: by "upload", by "import", or as a list of "images"
    key: str  # its key in the file store
    size: int
    sha256: str
    detected: Mapping[str, Any]
    request: RequestKey | None = None
    draft: bool = False  # it came with a request for a job, and is kept only with that job


@dataclass(frozen=True, slots=True)
class StoredFile:
    id: int
    owner_id: str
    name: str
    kind: str
    key: str
    size: int
    sha256: str
    detected: Mapping[str, Any]
    created_at: datetime | None


class Files:
    """Reads and changes stored files. A scope is an owner's name; None means all owners."""

    def __init__(self, database: Database, limits: Amounts = NO_LIMITS) -> None:
        self._database = database
        self._limits = limits

    @verb
    async def add_file(self, tx: Transaction, new: NewFile) -> int:
        await require_room(tx, self._limits, new.owner_id, files=1, bytes=new.size)
        params = {
            "owner_id": new.owner_id,
            "name": new.name,
            "kind": new.kind,
            "key": new.key,
            "size": new.size,
            "sha256": new.sha256,
            "detected": orjson.dumps(dict(new.detected)).decode(),
            "draft": int(new.draft),
        }
        rows = await tx.take("add_file", params)
        if not new.draft:
            detail = {"name": new.name, "size": new.size, "sha256": new.sha256}
            await add_audit(tx, new.owner_id, "file.stored", None, str(rows[0][0]), detail)
        await note_made(tx, new.request, rows[0][0])
        return int(rows[0][0])

    @verb
    async def drop_drafts(self, tx: Transaction, ids: Sequence[int]) -> list[str]:
        """Drops drafts; returns the keys whose content is to be removed now, without files that a
        job keeps."""
        return [row[0] for row in await tx.take("drop_drafts", {"ids": list(ids)})]

    async def old_drafts(self, seconds: float, limit: int, owner: str | None = None) -> list[int]:
        params = {"ago": -seconds, "limit": limit, "owner": owner}
        return [row["id"] for row in await self._database.fetch("old_drafts", params)]

    async def file(self, file_id: int, scope: str | None = None) -> StoredFile:
        rows = await self._database.fetch("file", {"id": file_id, "scope": scope})
        if not rows:
            raise NotThere(f"there is no file {file_id}", "GET /api/files lists yours.")
        return _file(rows[0])

    async def known_keys(self, keys: Sequence[str]) -> set[str]:
        """Returns those of the keys that a file or an export has."""
        return {row[0] for row in await self._database.fetch("stored_keys", {"keys": list(keys)})}

    async def page(
        self, scope: str | None, limit: int, before: int | None = None
    ) -> list[StoredFile]:
        """Lists files, the newest first."""
        params = {"limit": limit, "before": before or LAST_ID}
        if scope is None:
            rows = await self._database.fetch("files", params)
        else:
            rows = await self._database.fetch("files_of_owner", {**params, "scope": scope})
        return [_file(row) for row in rows]


def _file(row: Row) -> StoredFile:
    fields = fields_of(row)
    return StoredFile(**fields | {"detected": orjson.loads(fields["detected"])})
