"""Deletes jobs with everything that belongs to them, in chunks, while workers run.

The state DELETING is committed first: nothing can be claimed, ingested or settled afterwards. What
was settled before is committed by the time the ranges are gone, and is deleted with the rest. A
process that dies in between leaves a job in DELETING, which any other continues.

An application whose transaction stayed open all the time may commit items of a job that is gone.
They came with a range, which no worker claims; through it they are found and deleted.
"""

from __future__ import annotations

from typing import Any

from holdfast.kernel.database.database import Database, verb
from holdfast.kernel.database.driver import Row, Transaction
from holdfast.kernel.jobs.audit import add_audit
from holdfast.kernel.jobs.job_states import move
from holdfast.model import JobState

#: Rows that do not go with an item, each deleted in chunks.
_LEFTOVERS = (
    "delete_decisions",
    "delete_gate_uses",
    "delete_samples",
    "delete_stream_pages",
    "delete_stream_slices",
    "delete_letters",
)
_OF_ITEMS = (
    "delete_items",
    "delete_outcomes",
    "delete_attempts",
    "delete_rulings",
    "delete_item_letters",
)
#: A few rows for each job.
_LAST = (
    "delete_counters",
    "delete_nudge",
    "delete_streams",
    "delete_job",
)
_CHUNK = 1_000


class JobRows:
    def __init__(self, database: Database) -> None:
        self._database = database

    @verb("mark_deleting")
    async def mark(self, tx: Transaction, job_id: int, actor: str) -> JobState:
        """Sets the job's state to DELETING; from then on only its remains exist."""
        rows = await tx.fetch("job_to_delete", {"job_id": job_id})
        if rows and rows[0]["state"] == JobState.DELETING:
            return JobState.DELETING
        detail = {name: rows[0][name] for name in _SHOWN} if rows else {}
        return await move(tx, job_id, "delete", actor, detail)

    async def deleting_jobs(self) -> list[int]:
        return [row[0] for row in await self._database.fetch("deleting_jobs")]

    async def export_keys(self, job_id: int) -> list[str]:
        """Returns the keys of its exports in the file store."""
        rows = await self._database.fetch("export_keys_of_job", {"job_id": job_id})
        return [row["key"] for row in rows]

    async def pipeline_of(self, job_id: int) -> str | None:
        """Returns the pipeline of a job in DELETING."""
        rows = await self._database.fetch("pipeline_of_deleting", {"job_id": job_id})
        return str(rows[0]["pipeline"]) if rows else None

    async def delete_chunk(self, job_id: int) -> bool:
        """Deletes a chunk of a job in DELETING; returns False when nothing is left but its row."""
        return await self.delete_items(job_id) or await self._delete_leftovers(job_id)

    @verb
    async def delete_items(self, tx: Transaction, job_id: int) -> bool:
        """Deletes a chunk of items of a job that is in DELETING or being pruned; returns False if
        none is left."""
        jobs = await tx.fetch("job_to_delete", {"job_id": job_id})
        if not jobs or (jobs[0]["state"] != JobState.DELETING and jobs[0]["pruned_at"] is None):
            return False
        chunk = {"job_id": job_id, "lo": 0, "hi": _LAST_SEQ, "limit": _CHUNK}
        return bool(await _delete_items(tx, chunk))

    @verb
    async def _delete_leftovers(self, tx: Transaction, job_id: int) -> bool:
        job = await _deleting(tx, job_id)
        if job is None:
            return False
        chunk = {"job_id": job_id, "limit": _CHUNK}
        used = {row["branch"] for row in await tx.fetch("schema_versions")}
        own = self._domain_queries(job["pipeline"]) if job["pipeline"] in used else ()
        for query in (*own, *_LEFTOVERS):
            if await tx.take(query, chunk):
                return True
        return False

    def _domain_queries(self, pipeline: str) -> list[str]:
        """Returns the queries of an extension whose tables are there.

        They are PIPELINE_delete_job and those whose names begin with it and a `_`, in alphabetical
        order. Each deletes up to :limit rows of :job_id and returns them."""
        name = f"{pipeline}_delete_job"
        queries = self._database.driver.queries
        return sorted(query for query in queries if query == name or query.startswith(f"{name}_"))

    @verb
    async def finish_deletion(self, tx: Transaction, job_id: int) -> list[str] | None:
        """Deletes the last rows; returns None if the job is gone or was never to be deleted, else
        the keys of its exports in the file store: one may have been finished in the meantime."""
        job = await _deleting(tx, job_id)
        if job is None:
            return None
        exports = await tx.take("delete_exports_of_job", {"job_id": job_id})
        for query in _LAST:
            await tx.run(query, {"job_id": job_id})
        detail = {name: job[name] for name in _SHOWN}
        await add_audit(tx, "engine", "job.deleted", job_id, job["name"], detail)
        return [row["key"] for row in exports if row["key"] is not None]

    async def jobs_left_behind(self) -> list[int]:
        """Returns jobs that are gone and to which an application has added items since."""
        return [row[0] for row in await self._database.fetch("jobs_left_behind")]

    @verb
    async def delete_left_behind(self, tx: Transaction, job_id: int) -> bool:
        """Deletes a chunk of such items; returns False when nothing is left.

        A range goes after its items, so that they are found again if this is interrupted."""
        if await tx.fetch("job_to_delete", {"job_id": job_id}):
            return False
        ranges = await tx.fetch("ranges_left_behind", {"job_id": job_id, "limit": _CHUNK})
        if not ranges:
            await tx.run("delete_counters", {"job_id": job_id})
            return False
        left = _CHUNK
        for row in ranges:
            span = {"job_id": job_id, "lo": row["lo"], "hi": row["hi"], "limit": left}
            left -= await _delete_items(tx, span)
            if left <= 0:
                break
            await tx.run("drop_range", {"id": row["id"]})
        return True


async def mark_file(tx: Transaction, file_id: int, actor: str, detail: dict[str, Any]) -> None:
    """Commits to deleting a stored file: no job can be created from it afterwards.

    Its bytes go next and its row last, so that an interrupted deletion can be repeated."""
    if await tx.take("mark_file", {"id": file_id}):
        await add_audit(tx, actor, "file.deleted", None, str(file_id), detail)


_SHOWN = ("pipeline", "name", "owner_id")
_LAST_SEQ = 2**63 - 1


async def _deleting(tx: Transaction, job_id: int) -> Row | None:
    """Returns the job, locked, if it is to be deleted."""
    rows = await tx.fetch("job_to_delete", {"job_id": job_id})
    return rows[0] if rows and rows[0]["state"] == JobState.DELETING else None


async def _delete_items(tx: Transaction, chunk: dict[str, int]) -> int:
    """Deletes up to the limit of a job's items between two numbers, with all that belongs to
    them."""
    rows = await tx.fetch("items_to_delete", chunk)
    if not rows:
        return 0
    job_id = chunk["job_id"]
    await _delete_keys(tx, job_id, [row["key"] for row in rows if row["key"] is not None])
    span = {"job_id": job_id, "lo": rows[0]["seq"], "hi": rows[-1]["seq"]}
    for query in _OF_ITEMS:
        await tx.run(query, span)
    return len(rows)


async def _delete_keys(tx: Transaction, job_id: int, keys: list[str]) -> None:
    if not keys:
        return
    scopes = [row["scope"] for row in await tx.fetch("key_scopes")]
    await tx.run("delete_keys", {"job_id": job_id, "keys": keys, "scopes": scopes})
