"""Streams as people see them."""

from __future__ import annotations

from typing import Any

from holdfast.errors import NotThere
from holdfast.store.database import Database
from holdfast.store.reads import stream_view
from holdfast.store.rows import LAST_ID, fields_of


class StreamReads:
    """A scope is an owner's name; None means everybody's."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(
        self,
        scope: str | None,
        limit: int,
        before: int | None = None,
        state: str = "",
        pipeline: str = "",
    ) -> list[dict[str, Any]]:
        """The newest first."""
        params = {
            "scope": scope or "",
            "limit": limit,
            "before": before or LAST_ID,
            "state": state,
            "pipeline": pipeline,
        }
        rows = await self._database.fetch("streams_page", params)
        return [fields_of(row) | stream_view(row)._asdict() for row in rows]

    async def job_of(self, stream_id: int, scope: str | None) -> int:
        """The job that walks the stream."""
        params = {"id": stream_id, "scope": scope or ""}
        rows = await self._database.fetch("stream_job", params)
        if not rows:
            raise NotThere(f"there is no stream {stream_id}", "GET /api/streams lists yours.")
        return int(rows[0]["job_id"])
