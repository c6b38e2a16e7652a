"""Lists behind the API and the pages: scoped to an owner, paged by keyset.

A scope is an owner's name; None stands for everybody's, and is given only where the person
may see all.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from holdfast.errors import NotThere
from holdfast.model import Counters, Job, JobState
from holdfast.store.database import Database
from holdfast.store.instants import parse_instant
from holdfast.store.reads import job_of, with_cancelled

_LAST_ID = 2**62


class CountedJob(NamedTuple):
    job: Job
    counters: Counters
    heartbeat_at: datetime | None


class Pages:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def job(self, job_id: int, scope: str | None) -> Job:
        params = {"job_id": job_id, "scope": scope}
        rows = await self._database.fetch("job_in_scope", params)
        if not rows:
            raise NotThere(f"there is no job {job_id}", "GET /api/jobs lists yours.")
        return job_of(rows[0])

    async def jobs(
        self,
        scope: str | None,
        limit: int,
        before: int | None = None,
        states: Sequence[str] = (),
        pipelines: Sequence[str] = (),
    ) -> list[CountedJob]:
        """The newest first."""
        params = {
            "limit": limit,
            "before": before or _LAST_ID,
            "any_state": int(not states),
            "states": list(states),
            "any_pipeline": int(not pipelines),
            "pipelines": list(pipelines),
        }
        if scope is None:
            rows = await self._database.fetch("jobs_page", params)
        else:
            rows = await self._database.fetch("jobs_page_of_owner", {**params, "scope": scope})
        return await self.counted([job_of(row) for row in rows])

    async def counted(self, jobs: Sequence[Job]) -> list[CountedJob]:
        """The jobs with their counters, in one query for all."""
        ids = {"job_ids": [job.id for job in jobs]}
        rows = {row[0]: row for row in await self._database.fetch("counters_of_jobs", ids)}
        return [_counted(job, rows.get(job.id)) for job in jobs]

    async def upload_jobs(self, pipelines: Sequence[str]) -> list[tuple[int, str]]:
        rows = await self._database.fetch("upload_jobs", {"pipelines": list(pipelines)})
        return [(row[0], row[1]) for row in rows]


def _counted(job: Job, row: Sequence[object] | None) -> CountedJob:
    if row is None:
        return CountedJob(job, Counters(), None)
    counters = Counters(*row[1:9])  # type: ignore[arg-type]
    if job.state is JobState.CANCELLED:
        counters = with_cancelled(counters)
    return CountedJob(job, counters, parse_instant(row[9]))
