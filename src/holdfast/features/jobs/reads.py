"""Jobs as people see them: lists by keyset, counters, errors, decisions.

A scope is an owner's name; None means all owners, for people who can see everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from holdfast.errors import NotThere, UserError
from holdfast.features.jobs.error_groups import CodeGroup, errors_by_code
from holdfast.kernel import Store
from holdfast.kernel.database.driver import Row
from holdfast.kernel.database.instants import parse_instant
from holdfast.kernel.database.rows import LAST_ID, fields_of
from holdfast.kernel.jobs.reads import counters_of, job_of, with_cancelled
from holdfast.model import IDLE, Counters, Job, JobState


class CountedJob(NamedTuple):
    job: Job
    counters: Counters
    heartbeat_at: datetime | None


class JobOfItems(NamedTuple):
    pipeline: str
    owner_id: str
    name: str
    accepted: int
    finished: int

    @property
    def progress(self) -> float | None:
        return self.finished / self.accepted if self.accepted else None


@dataclass(frozen=True, slots=True)
class Left:
    """How many items of a job are still to be deleted, and how many there were; both at most."""

    items: int
    of: int


class JobReads:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._database = store.database

    async def job(self, job_id: int, scope: str | None) -> Job:
        try:
            job = await self._store.reads.job(job_id)
        except NotThere:
            job = None
        if job is None or scope not in (None, job.owner_id):
            raise NotThere(
                f"there is no job {job_id}", "`holdfast jobs` and GET /api/jobs list yours."
            )
        return job

    async def page(
        self,
        scope: str | None,
        limit: int,
        before: int | None = None,
        states: Sequence[str] = (),
        pipelines: Sequence[str] = (),
    ) -> list[CountedJob]:
        """Lists jobs, the newest first."""
        params = {
            "limit": limit,
            "before": before or LAST_ID,
            "any_state": int(not states),
            "states": [state for state in states if state != IDLE],
            "idle": int(IDLE in states),
            "any_pipeline": int(not pipelines),
            "pipelines": list(pipelines),
        }
        if scope is None:
            rows = await self._database.fetch("jobs_page", params)
        else:
            rows = await self._database.fetch("jobs_page_of_owner", {**params, "scope": scope})
        return await self.counted([job_of(row) for row in rows])

    async def live(self, seconds: float) -> list[Job]:
        """Lists jobs that run or wait, and those that changed within the last `seconds`."""
        rows = await self._database.fetch("live_jobs", {"seconds": seconds})
        return [job_of(row) for row in rows]

    async def counted(self, jobs: Sequence[Job]) -> list[CountedJob]:
        """Returns the jobs with their counters, in one query for all."""
        ids = {"job_ids": [job.id for job in jobs]}
        rows = {row["job_id"]: row for row in await self._database.fetch("counters_of_jobs", ids)}
        return [_counted(job, rows.get(job.id)) for job in jobs]

    async def left_to_delete(self, job_id: int) -> Left:
        first, last, accepted = (await self._database.fetch("item_span", {"job_id": job_id}))[0]
        return Left(0 if first is None else min(last - first + 1, accepted), accepted)

    async def of_items(self, job_ids: Sequence[int]) -> dict[int, JobOfItems]:
        """Returns what a list of items shows of their jobs."""
        rows = await self._database.fetch("jobs_of_items", {"job_ids": list(job_ids)})
        return {row[0]: JobOfItems(*list(row)[1:]) for row in rows}

    async def heartbeat(self, job_id: int) -> datetime | None:
        """Returns when an item of the job was last ingested or settled."""
        return parse_instant((await self._database.fetch("heartbeat", {"job_id": job_id}))[0][0])

    async def errors_by_code(self, job_id: int) -> list[CodeGroup]:
        return await errors_by_code(self._database, job_id)

    async def decisions(self, job_id: int, limit: int) -> list[dict[str, Any]]:
        """Lists what the adaptive controllers decided, the newest first."""
        params = {"job_id": job_id, "limit": limit}
        return [fields_of(row) for row in await self._database.fetch("decisions_of_job", params)]


def states_of(text: str) -> list[str]:
    """Parses states such as RUNNING,IDLE; IDLE is not stored."""
    states = [word for word in (each.strip() for each in text.upper().split(",")) if word]
    known = [*JobState, IDLE]
    unknown = [word for word in states if word not in known]
    if unknown:
        raise UserError(f"there is no state {unknown[0]!r}", f"States: {', '.join(known)}.")
    return states


def _counted(job: Job, row: Row | None) -> CountedJob:
    if row is None:
        return CountedJob(job, Counters(), None)
    counters = counters_of(row)
    if job.state is JobState.CANCELLED:
        counters = with_cancelled(counters)
    return CountedJob(job, counters, parse_instant(row["updated_at"]))
