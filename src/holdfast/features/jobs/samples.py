"""Charts of jobs over time, from the samples that upkeep takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.kernel.database.database import Database
from holdfast.kernel.jobs.samples import BUCKET_SECONDS, current_bucket

_MOST_POINTS = 400
#: The newest are never thinned out, so that a chart grows as it is watched.
_FRESH_BUCKETS = 30


class Sample(NamedTuple):
    """A job's counters at one moment."""

    at: int  # seconds since 1970
    accepted: int
    finished: int
    error: int
    throttled: int


class Step(NamedTuple):
    """What some jobs did together between two moments, and what they had open at the second."""

    at: int
    finished: int
    error: int
    open: int


class SampleReads:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_job(self, job_id: int) -> list[Sample]:
        """Returns samples from the job's beginning, thinned out to a few hundred points."""
        first, last = (await self._database.fetch("sampled_span", {"job_id": job_id}))[0]
        if first is None:
            return []
        params = {
            "job_id": job_id,
            "since": first,
            "step": _step(last - first),
            "fresh": last - _FRESH_BUCKETS,
        }
        rows = await self._database.fetch("samples_of_job", params)
        return [Sample(row[0] * BUCKET_SECONDS, *row[1:]) for row in rows]

    async def of_jobs(self, scope: str | None, seconds: float) -> tuple[int, list[Step]]:
        """Returns the seconds of a step, and the steps of an owner's jobs together, or of all
        jobs."""
        buckets = int(seconds // BUCKET_SECONDS)
        step = _step(buckets)
        since = await current_bucket(self._database) - buckets
        params = {"scope": scope or "", "since": since, "step": step}
        rows = await self._database.fetch("samples_of_jobs", params)
        return step * BUCKET_SECONDS, [Step(row[0] * BUCKET_SECONDS, *row[1:]) for row in rows]

    async def latest_errors(self, job_ids: Sequence[int], seconds: float) -> dict[str, int]:
        """Returns how many of the jobs' items recently ended with each error code."""
        params = {"job_ids": list(job_ids), "seconds": seconds}
        rows = await self._database.fetch("latest_errors", params)
        return {row[0] or "UNKNOWN_ERROR": row[1] for row in rows}


def _step(buckets: int) -> int:
    return max(1, -(-buckets // _MOST_POINTS))
