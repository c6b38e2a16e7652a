"""How jobs stood over time: one small row for each running job and ten seconds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from holdfast.store.database import Database
from holdfast.store.driver import Transaction
from holdfast.store.instants import parse_instant

BUCKET_SECONDS = 10
_KEPT_BUCKETS = 14 * 86_400 // BUCKET_SECONDS
_MOST_POINTS = 400
#: The newest are never thinned out, so that a chart grows as it is watched.
_FRESH_BUCKETS = 30


class Sample(NamedTuple):
    """A job's counters at one moment."""

    at: int  # seconds from 1970
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


class SampleTable:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def take_samples(self) -> None:
        """Once in a bucket, whoever asks and how often."""
        now = await self._bucket()

        async def body(tx: Transaction) -> None:
            await tx.run("take_samples", {"bucket": now})
            await tx.run("forget_samples", {"bucket": now - _KEPT_BUCKETS})

        await self._database.write("take_samples", body, relaxed=True)

    async def of_job(self, job_id: int) -> list[Sample]:
        """From its beginning, thinned out to some hundred points."""
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
        """Seconds of a step, and the steps of an owner's jobs together, or of everybody's."""
        buckets = int(seconds // BUCKET_SECONDS)
        step = _step(buckets)
        since = await self._bucket() - buckets
        params = {"scope": scope or "", "since": since, "step": step}
        rows = await self._database.fetch("samples_of_jobs", params)
        return step * BUCKET_SECONDS, [Step(row[0] * BUCKET_SECONDS, *row[1:]) for row in rows]

    async def latest_errors(self, job_ids: Sequence[int], seconds: float) -> dict[str, int]:
        """Code -> how many of the jobs' items ended with it lately."""
        params = {"job_ids": list(job_ids), "seconds": seconds}
        rows = await self._database.fetch("latest_errors", params)
        return {row[0] or "UNKNOWN_ERROR": row[1] for row in rows}

    async def _bucket(self) -> int:
        now = parse_instant((await self._database.fetch("database_now"))[0][0])
        assert isinstance(now, datetime)
        return int(now.timestamp()) // BUCKET_SECONDS


def _step(buckets: int) -> int:
    return max(1, -(-buckets // _MOST_POINTS))
