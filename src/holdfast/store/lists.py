"""Smaller lists of the API and the pages: streams, dead letters, audit, what is live."""

from __future__ import annotations

from typing import Any

from holdfast.errors import NotThere
from holdfast.model import Job
from holdfast.store.database import Database
from holdfast.store.instants import parse_instant
from holdfast.store.reads import job_of, stream_view

_LAST_ID = 2**62
_STREAM_COLUMNS = 20


class Lists:
    """As in `Pages`, a scope is an owner's name, and None stands for everybody's."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def live_jobs(self, seconds: float) -> list[Job]:
        """Jobs that run or wait, and those that changed within so many seconds."""
        rows = await self._database.fetch("live_jobs", {"seconds": seconds})
        return [job_of(row) for row in rows]

    async def streams(
        self,
        scope: str | None,
        limit: int,
        before: int | None = None,
        state: str = "",
        pipeline: str = "",
    ) -> list[dict[str, Any]]:
        params = {
            "scope": scope or "",
            "limit": limit,
            "before": before or _LAST_ID,
            "state": state,
            "pipeline": pipeline,
        }
        found = []
        for row in await self._database.fetch("streams_page", params):
            extra = {
                "pipeline": row[20],
                "job_id": row[21],
                "full_completed_at": parse_instant(row[22]),
                "owner_id": row[23],
            }
            found.append(stream_view(row[:_STREAM_COLUMNS])._asdict() | extra)
        return found

    async def stream_job(self, stream_id: int, scope: str | None) -> int:
        """The job that walks the stream."""
        params = {"id": stream_id, "scope": scope or ""}
        rows = await self._database.fetch("stream_job", params)
        if not rows:
            raise NotThere(f"there is no stream {stream_id}", "GET /api/streams lists yours.")
        return int(rows[0][0])

    async def dead_letters(
        self, scope: str | None, state: str, limit: int, before: int | None = None
    ) -> list[dict[str, Any]]:
        names = ("id", "kind", "job_id", "seq", "pipeline", "code", "message", "state",
                 "created_at", "acted_at", "actor")  # fmt: skip
        params = {
            "scope": scope or "",
            "state": state,
            "limit": limit,
            "before": before or _LAST_ID,
        }
        rows = await self._database.fetch("dead_letters_page", params)
        return [_named(names, row) for row in rows]

    async def require_dead_letter(self, letter_id: int, scope: str | None) -> None:
        params = {"id": letter_id, "scope": scope or ""}
        if not await self._database.fetch("dead_letter_in_scope", params):
            raise NotThere(
                f"there is no dead letter {letter_id}", "GET /api/dead-letters lists yours."
            )

    async def audit(
        self, scope: str | None, limit: int, before: int | None = None, job_id: int = 0
    ) -> list[dict[str, Any]]:
        names = ("id", "actor", "action", "job_id", "subject", "detail", "at")
        params = {
            "scope": scope or "",
            "limit": limit,
            "before": before or _LAST_ID,
            "job_id": job_id,
        }
        rows = await self._database.fetch("audit_page", params)
        return [_named(names, row) for row in rows]


def _named(names: tuple[str, ...], row: Any) -> dict[str, Any]:
    told = dict(zip(names, row, strict=True))
    for name in told:
        if name == "at" or name.endswith("_at"):
            told[name] = parse_instant(told[name])
    return told
