"""Reads what is stored about projects, for pages, routes and commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from holdfast.errors import NotThere
from holdfast.model import Json
from holdfast.pipeline import Fetch, Row
from holdfast_linker.projects import Project
from holdfast_linker.tasks import TaskState, task_id

_HIGHEST = 1_000.0


@dataclass(frozen=True, slots=True)
class ReviewPosition:
    """A task's place in the order of review."""

    score: float = _HIGHEST
    job_id: int = 0
    seq: int = 0


@dataclass(frozen=True, slots=True)
class TaskFilter:
    state: TaskState = TaskState.AWAITING_REVIEW
    low: float = -1.0
    high: float = _HIGHEST


class LinkerReads:
    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    async def projects(self, scope: str | None, before: int, limit: int) -> list[Project]:
        """Lists projects, the newest first; those that `scope` may see, or all."""
        params = {"scope": scope, "before": before, "limit": limit}
        return [Project.of(row) for row in await self._fetch("linker_projects", params)]

    async def project(self, project_id: int, scope: str | None) -> Project:
        """Returns a project; one of another owner does not exist for people who were not invited to
        it."""
        rows = await self._fetch("linker_project", {"id": project_id})
        if rows:
            project = Project.of(rows[0])
            if scope in (None, project.owner_id) or scope in await self.readers(project_id):
                return project
        raise NotThere(f"there is no project {project_id}", "GET /api/projects lists yours.")

    async def readers(self, project_id: int) -> list[str]:
        rows = await self._fetch("linker_readers_of", {"project_id": project_id})
        return [row["user_name"] for row in rows]

    async def datasets(self, project_id: int) -> list[Json]:
        rows = await self._fetch("linker_datasets_of", {"project_id": project_id})
        return [_named(row) | {"mapping": orjson.loads(row["mapping"])} for row in rows]

    async def counts(self, project_id: int) -> dict[str, int]:
        rows = await self._fetch("linker_counts", {"project_id": project_id})
        counts = {str(state): 0 for state in TaskState}
        return counts | {row["state"]: row["entries"] for row in rows}

    async def usage(self, project_id: int) -> tuple[int, int]:
        """Returns the number of settled entries, and of HTTP calls made for them."""
        row = (await self._fetch("linker_usage", {"project_id": project_id}))[0]
        return row["entries"], row["calls"]

    async def linked(self, project_id: int) -> int:
        """Counts the entries that have an item."""
        rows = await self._fetch("linker_linked", {"project_id": project_id})
        return int(rows[0]["entries"])

    async def repeated_ids(self, project_id: int, limit: int = 20) -> list[tuple[str, int]]:
        params = {"project_id": project_id, "limit": limit}
        rows = await self._fetch("linker_repeated_ids", params)
        return [(row["key"], row["entries"]) for row in rows]

    async def tasks(
        self, project_id: int, wanted: TaskFilter, after: ReviewPosition, limit: int
    ) -> list[Json]:
        params = {
            "project_id": project_id,
            "state": str(wanted.state),
            "low": wanted.low,
            "high": wanted.high,
            "score": after.score,
            "job_id": after.job_id,
            "seq": after.seq,
            "limit": limit,
        }
        return [_task(row) for row in await self._fetch("linker_tasks_page", params)]

    async def task(self, project_id: int, job_id: int, seq: int) -> Json:
        params = {"project_id": project_id, "job_id": job_id, "seq": seq}
        rows = await self._fetch("linker_task_of", params)
        if not rows:
            raise NotThere(f"project {project_id} has no task {job_id}/{seq}")
        return _task(rows[0])

    async def candidates(self, job_id: int, seq: int) -> list[Json]:
        rows = await self._fetch("linker_candidates_of", {"job_id": job_id, "seq": seq})
        return [
            _named(row)
            | {"fields": orjson.loads(row["fields"]), "matched": orjson.loads(row["matched"])}
            for row in rows
        ]

    async def rematchable(self, project_id: int, job_id: int, seqs: Sequence[int]) -> list[int]:
        params = {"project_id": project_id, "job_id": job_id, "seqs": list(seqs)}
        return [row["seq"] for row in await self._fetch("linker_rematchable", params)]


def position_of(task: Json) -> ReviewPosition:
    score = task["score"]
    return ReviewPosition(-1.0 if score is None else score, task["job_id"], task["seq"])


def _task(row: Row) -> Json:
    entry = orjson.loads(row["entry"])
    return _named(row) | {"entry": entry, "task_id": task_id(row["job_id"], row["seq"])}


def _named(row: Row) -> Json:
    return {name: _instant(row[name]) for name in row.keys()}  # noqa: SIM118 - not a dict


def _instant(value: Any) -> Any:
    """Returns an instant as text, whichever type the database returns."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value
