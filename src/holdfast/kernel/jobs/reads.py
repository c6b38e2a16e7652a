"""Reads what the engine asks about jobs, streams and the state of the whole.

Nothing here writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import orjson

from holdfast.errors import NotThere
from holdfast.kernel.database.database import Database
from holdfast.kernel.database.driver import Row
from holdfast.kernel.database.instants import seconds_between
from holdfast.kernel.database.rows import fields_of, known, removed_of
from holdfast.model import Counters, Job, JobState, Lane
from holdfast.reading import reading_of


@dataclass(frozen=True, slots=True)
class Verification:
    """The counters, and the same counts from the rows and from what was removed."""

    counters: Counters
    items: int
    by_status: dict[str, int]
    open_in_ranges: int
    pruned: bool = False  # only the counters are left

    @property
    def problems(self) -> list[str]:
        if self.pruned:
            return []
        pairs = {
            "accepted": (self.counters.accepted, self.items),
            "done": (self.counters.done, self.by_status.get("DONE", 0)),
            "not_found": (self.counters.not_found, self.by_status.get("NOT_FOUND", 0)),
            "skipped": (self.counters.skipped, self.by_status.get("SKIPPED", 0)),
            "error": (self.counters.error, self.by_status.get("ERROR", 0)),
            "open": (self.counters.open, self.open_in_ranges),
        }
        return [
            f"{name}: counted {counted}, found {rows}"
            for name, (counted, rows) in pairs.items()
            if counted != rows
        ]


@dataclass(frozen=True, slots=True)
class StoredContent:
    """A stored file, as far as a job needs it; its key is the one in the file store."""

    name: str
    key: str
    size: int
    sha256: str


class DueJob(NamedTuple):
    """A job with something to do now."""

    job_id: int
    lane: Lane
    owner_id: str


class Reads:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def oldest_transaction_seconds(self) -> float | None:
        """Returns how long the database's oldest transaction has been open; None if there is
        none."""
        seconds: float | None = (await self._database.fetch("oldest_transaction"))[0][0]
        return seconds

    async def schema_versions(self) -> dict[str, int]:
        """Returns branch -> the version of its schema in the database."""
        return {row[0]: row[1] for row in await self._database.fetch("schema_versions")}

    async def job(self, job_id: int) -> Job:
        rows = await self._database.fetch("job", {"job_id": job_id})
        if not rows:
            raise NotThere(f"there is no job {job_id}", "`holdfast jobs` lists the jobs.")
        return job_of(rows[0])

    async def job_by_input(self, pipeline: str, input_key: str, owner_id: str) -> int | None:
        params = {"pipeline": pipeline, "input_key": input_key, "owner_id": owner_id}
        rows = await self._database.fetch("job_by_input", params)
        return rows[0][0] if rows else None

    async def counters(self, job_id: int) -> Counters:
        """Reads the job's counters.

        In a cancelled job, items without an outcome count as SKIPPED."""
        async with self._database.driver.reading() as tx:
            rows = await tx.fetch("counters", {"job_id": job_id})
            job = await tx.fetch("job", {"job_id": job_id})
        counters = counters_of(rows[0])
        if job and job[0]["state"] == JobState.CANCELLED:
            return with_cancelled(counters)
        return counters

    async def runnable_jobs(self, pipelines: Sequence[str]) -> list[DueJob]:
        """Returns jobs with items that are due."""
        rows = await self._database.fetch("runnable_jobs", {"pipelines": list(pipelines)})
        return [_due_job(row) for row in rows]

    async def discovering_jobs(
        self, discovering: Sequence[str], reading: Sequence[str] = ()
    ) -> list[DueJob]:
        """Returns jobs with a stream to read: of pipelines that discover records, and over stored
        files, which any pipeline may have."""
        params = {"discovering": list(discovering), "reading": list(reading)}
        rows = await self._database.fetch("discovering_jobs", params)
        return [_due_job(row) for row in rows]

    async def stored_file(self, file_id: int) -> StoredContent:
        """Returns what a job over a stored file reads."""
        rows = await self._database.fetch("stored_content", {"id": file_id})
        if not rows:
            raise NotThere(f"there is no file {file_id}")
        return StoredContent(**fields_of(rows[0]))

    async def unfinished_jobs(self, pipelines: Sequence[str]) -> list[int]:
        """Returns running jobs with something left to do."""
        rows = await self._database.fetch("unfinished_jobs", {"pipelines": list(pipelines)})
        return [row[0] for row in rows]

    async def finishable_jobs(self) -> list[int]:
        return [row[0] for row in await self._database.fetch("finishable_jobs")]

    async def cancelled_jobs_with_ranges(self) -> list[int]:
        return [row[0] for row in await self._database.fetch("cancelled_jobs_with_ranges")]

    async def job_controls(self, job_ids: Sequence[int]) -> dict[int, tuple[JobState, str | None]]:
        """Returns the state and kill switch of each job that still exists."""
        rows = await self._database.fetch("job_controls", {"job_ids": list(job_ids)})
        return {row["id"]: (JobState(row["state"]), row["kill_switch"]) for row in rows}

    async def verify(self, job_id: int) -> Verification:
        """Counts the rows, in one snapshot with the counters."""
        job = {"job_id": job_id}
        async with self._database.driver.reading() as tx:
            counters = counters_of((await tx.fetch("counters", job))[0])
            items = (await tx.fetch("count_items", job))[0][0]
            outcomes = await tx.fetch("count_outcomes", job)
            fresh = (await tx.fetch("count_fresh_open", job))[0][0]
            again = (await tx.fetch("count_again_open", job))[0][0]
            row = (await tx.fetch("job", job))[0]
        by_status = {row["status"]: row["count"] for row in outcomes}
        if row["state"] == JobState.CANCELLED:
            finished = sum(count for status, count in by_status.items() if status != "PENDING")
            by_status["SKIPPED"] = by_status.get("SKIPPED", 0) + items - finished
            counters = with_cancelled(counters)
        removed = removed_of(row["removed"])
        for status, count in removed.items():
            by_status[status] = by_status.get(status, 0) + count
        items += sum(removed.values())
        pruned = row["pruned_at"] is not None
        return Verification(counters, items, by_status, fresh + again, pruned)

    async def count_dead_letters(self) -> dict[str, int]:
        rows = await self._database.fetch("count_dead_letters")
        return {row["pipeline"]: row["count"] for row in rows}

    async def backlog(self) -> int:
        """Counts the items that could be worked on now."""
        return int((await self._database.fetch("backlog"))[0]["items"])

    async def kill_switches(self) -> list[dict[str, Any]]:
        return [fields_of(row) for row in await self._database.fetch("kill_switches")]

    async def queue_depth(self) -> list[tuple[str, int, float]]:
        """Returns for each pipeline its open items and the age of the oldest in seconds."""
        rows = await self._database.fetch("queue_depth")
        return [
            (row["pipeline"], row["open"], seconds_between(row["since"], row["now"]))
            for row in rows
        ]


def with_cancelled(counters: Counters) -> Counters:
    values = (
        counters.accepted,
        counters.done,
        counters.not_found,
        counters.skipped + counters.open,
        counters.error,
        counters.retried,
        counters.throttled,
        counters.known,
    )
    return Counters(*values)


def counters_of(row: Row) -> Counters:
    return Counters(**{field.name: row[field.name] for field in fields(Counters)})


def _due_job(row: Row) -> DueJob:
    return DueJob(row["id"], Lane(row["lane"]), row["owner_id"])


def job_of(row: Row) -> Job:
    """Converts a row to a job.

    Another version may have written it: an odd value must not break the list of all jobs."""
    values = fields_of(row)
    columns, options = orjson.loads(values["columns"]), orjson.loads(values["options"])
    state = values["state"]
    job = Job(
        **values
        | {
            "state": known(JobState.FAILED, state),
            "lane": known(Lane.BACKFILL, values["lane"]),
            "columns": tuple(map(str, columns)) if isinstance(columns, list) else (),
            "options": options if isinstance(options, dict) else {},
            "reading": reading_of(values["reading"]),
            "standing": bool(values["standing"]),
            "removed": removed_of(values["removed"]),
        }
    )
    if job.state == state:
        return job
    return replace(job, error=f"its stored state, {state!r}, is not known to this version")
