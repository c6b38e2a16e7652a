"""What people and pages ask. Nothing here writes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import orjson

from holdfast.errors import NotThere
from holdfast.model import Counters, ItemStatus, Job, JobState, Lane
from holdfast.store.database import Database
from holdfast.store.driver import Row
from holdfast.store.error_groups import CodeGroup, errors_by_code
from holdfast.store.instants import parse_instant, seconds_between
from holdfast.store.item_pages import ItemFilter, ItemPages, ItemView, holder_of

_PAGE = 1000
_LAST_ID = 2**62


class StreamView(NamedTuple):
    id: int
    source: str
    mode: str
    state: str
    generation: int
    cursor: str | None
    pages_count: int
    records_count: int
    items_count: int
    max_items: int | None
    expected_count: int | None
    failures: int
    error: str | None
    available_at: datetime | None
    worker: str | None
    updated_at: datetime | None
    due: bool
    leased: bool
    actual_count: int | None  # what is kept, where the pipeline counted it at the end
    verified_at: datetime | None


class RangeView(NamedTuple):
    id: int
    lo: int
    hi: int
    again: bool
    available_at: datetime | None
    worker: str | None
    expires_at: datetime | None
    expiries: int
    settled: int
    waiting_for: str | None
    since: datetime | None
    due: bool
    leased: bool


class DueView(NamedTuple):
    available_at: datetime | None
    waiting_for: str | None
    due: bool


@dataclass(frozen=True, slots=True)
class Verification:
    """The counters beside what the rows say."""

    counters: Counters
    items: int
    by_status: dict[str, int]
    open_in_ranges: int

    @property
    def problems(self) -> list[str]:
        found = {
            "accepted": (self.counters.accepted, self.items),
            "done": (self.counters.done, self.by_status.get("DONE", 0)),
            "not_found": (self.counters.not_found, self.by_status.get("NOT_FOUND", 0)),
            "skipped": (self.counters.skipped, self.by_status.get("SKIPPED", 0)),
            "error": (self.counters.error, self.by_status.get("ERROR", 0)),
            "open": (self.counters.open, self.open_in_ranges),
        }
        return [
            f"{name}: counted {counted}, found {rows}"
            for name, (counted, rows) in found.items()
            if counted != rows
        ]


class Reads:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def oldest_transaction_seconds(self) -> float | None:
        """How long the database's oldest transaction has been open; None where none is."""
        seconds: float | None = (await self._database.fetch("oldest_transaction"))[0][0]
        return seconds

    async def schema_revisions(self) -> set[str]:
        return {row[0] for row in await self._database.fetch("schema_revisions")}

    async def job(self, job_id: int) -> Job:
        rows = await self._database.fetch("job", {"job_id": job_id})
        if not rows:
            raise NotThere(f"there is no job {job_id}", "`holdfast jobs` lists the jobs.")
        return job_of(rows[0])

    async def jobs(self, limit: int, before: int | None = None) -> list[Job]:
        params = {"limit": limit, "before": before or _LAST_ID}
        return [job_of(row) for row in await self._database.fetch("jobs", params)]

    async def job_by_input(self, pipeline: str, input_key: str, owner_id: str) -> int | None:
        params = {"pipeline": pipeline, "input_key": input_key, "owner_id": owner_id}
        rows = await self._database.fetch("job_by_input", params)
        return rows[0][0] if rows else None

    async def counters(self, job_id: int) -> Counters:
        """In a cancelled job, items without an outcome count as SKIPPED."""
        async with self._database.driver.reading() as tx:
            rows = await tx.fetch("counters", {"job_id": job_id})
            job = await tx.fetch("job", {"job_id": job_id})
        counters = Counters(*rows[0])
        if job and job[0][3] == JobState.CANCELLED:
            return with_cancelled(counters)
        return counters

    async def heartbeat(self, job_id: int) -> datetime | None:
        return parse_instant((await self._database.fetch("heartbeat", {"job_id": job_id}))[0][0])

    async def runnable_jobs(self, pipelines: Sequence[str]) -> list[tuple[int, str, str]]:
        rows = await self._database.fetch("runnable_jobs", {"pipelines": list(pipelines)})
        return [(row[0], row[1], row[2]) for row in rows]

    async def discovering_jobs(self, pipelines: Sequence[str]) -> list[tuple[int, str]]:
        rows = await self._database.fetch("discovering_jobs", {"pipelines": list(pipelines)})
        return [(row[0], row[1]) for row in rows]

    async def running_jobs(self, pipelines: Sequence[str]) -> list[int]:
        rows = await self._database.fetch("running_jobs", {"pipelines": list(pipelines)})
        return [row[0] for row in rows]

    async def job_controls(self, job_ids: Sequence[int]) -> dict[int, tuple[JobState, str | None]]:
        """State and kill switch of each job that still exists."""
        rows = await self._database.fetch("job_controls", {"job_ids": list(job_ids)})
        return {row[0]: (JobState(row[1]), row[2]) for row in rows}

    async def verify(self, job_id: int) -> Verification:
        """Counts the rows, in one snapshot with the counters."""
        job = {"job_id": job_id}
        async with self._database.driver.reading() as tx:
            counters = Counters(*(await tx.fetch("counters", job))[0])
            items = (await tx.fetch("count_items", job))[0][0]
            by_status = {row[0]: row[1] for row in await tx.fetch("count_outcomes", job)}
            fresh = (await tx.fetch("count_fresh_open", job))[0][0]
            again = (await tx.fetch("count_again_open", job))[0][0]
            state = (await tx.fetch("job", job))[0][3]
        if state == JobState.CANCELLED:
            finished = sum(count for status, count in by_status.items() if status != "PENDING")
            by_status["SKIPPED"] = by_status.get("SKIPPED", 0) + items - finished
            counters = with_cancelled(counters)
        return Verification(counters, items, by_status, fresh + again)

    async def streams(self, job_id: int) -> list[StreamView]:
        rows = await self._database.fetch("streams_of_job", {"job_id": job_id})
        return [stream_view(row) for row in rows]

    async def ranges(self, job_id: int, limit: int = 50) -> list[RangeView]:
        rows = await self._database.fetch("ranges_of_job", {"job_id": job_id, "limit": limit})
        return [_range_view(row) for row in rows]

    async def range(self, range_id: int) -> RangeView | None:
        rows = await self._database.fetch("range", {"range_id": range_id})
        return _range_view(rows[0]) if rows else None

    async def count_ranges(self, job_id: int) -> int:
        return int((await self._database.fetch("count_ranges", {"job_id": job_id}))[0][0])

    async def next_due(self, job_id: int) -> DueView | None:
        rows = await self._database.fetch("next_due", {"job_id": job_id})
        if not rows:
            return None
        return DueView(parse_instant(rows[0][0]), rows[0][1], bool(rows[0][2]))

    async def latest_retry(self, job_id: int) -> str | None:
        """What the item that was last put off failed with."""
        rows = await self._database.fetch("latest_retry", {"job_id": job_id})
        return f"{rows[0][0]}: {rows[0][1]}" if rows else None

    async def lease_holders(self, job_id: int) -> list[tuple[str, int, datetime | None]]:
        rows = await self._database.fetch("lease_holders", {"job_id": job_id})
        return [(row[0], row[1], parse_instant(row[2])) for row in rows]

    async def live_workers(self, lost_seconds: float) -> list[dict[str, Any]]:
        names = ("name", "host", "pid", "pipelines", "started_at", "seen_at")
        found = await self._named("live_workers", names, {"lost_seconds": lost_seconds})
        return [worker | {"pipelines": orjson.loads(worker["pipelines"])} for worker in found]

    async def items(
        self, job_id: int, statuses: Sequence[ItemStatus] = ()
    ) -> AsyncGenerator[list[ItemView]]:
        """Pages of items: all of them by seq, or those of some statuses by (updated_at, seq)."""
        job = await self.job(job_id)
        filter = ItemFilter(tuple(statuses))
        async for page in ItemPages(self._database).every(job, filter, _PAGE):
            yield page

    async def item(self, job_id: int, seq: int) -> dict[str, Any] | None:
        names = (
            "seq", "key", "input", "status", "normalized", "result", "error_code",
            "error_message", "tries", "attempts", "misses", "seconds", "range_id", "updated_at",
        )  # fmt: skip
        params = {"job_id": job_id, "seq": seq}
        rows = await self._database.fetch("item", params)
        if not rows:
            return None
        leased = await self._database.fetch("leased_ranges", {"job_id": job_id})
        told = dict(zip(names, rows[0], strict=True))
        told["worker"] = None
        if told["status"] in (None, ItemStatus.PENDING):
            told["worker"] = holder_of(seq, told["status"], told["range_id"], leased)
        if told["worker"] is not None:
            told["status"] = ItemStatus.PROCESSING
        return told | {"updated_at": parse_instant(told["updated_at"])}

    async def attempts(self, job_id: int, seq: int) -> list[dict[str, Any]]:
        names = ("number", "status", "result", "error_code", "error_message", "seconds",
                 "worker", "at")  # fmt: skip
        return await self._named("attempts_of_item", names, {"job_id": job_id, "seq": seq})

    async def errors_by_code(self, job_id: int) -> list[CodeGroup]:
        return await errors_by_code(self._database, job_id)

    async def dead_letters(self, state: str, limit: int) -> list[dict[str, Any]]:
        names = ("id", "kind", "job_id", "seq", "pipeline", "code", "message", "state",
                 "created_at", "acted_at", "actor")  # fmt: skip
        return await self._named("dead_letters", names, {"state": state, "limit": limit})

    async def dead_letter(self, letter_id: int) -> dict[str, Any] | None:
        """One of them whole; of a message also its payload, and where and why it died each
        time."""
        names = ("id", "kind", "job_id", "seq", "pipeline", "code", "message", "state",
                 "created_at", "acted_at", "actor", "message_id", "queue", "payload",
                 "history")  # fmt: skip
        found = await self._named("dead_letter", names, {"id": letter_id})
        if not found:
            return None
        letter = found[0]
        payload, history = letter["payload"], orjson.loads(letter["history"] or "[]")
        return letter | {"payload": payload and bytes(payload), "history": history}

    async def dead_letters_of_item(self, job_id: int, seq: int) -> list[dict[str, Any]]:
        names = ("id", "code", "message", "state", "created_at", "acted_at", "actor")
        params = {"job_id": job_id, "seq": seq}
        return await self._named("dead_letters_of_item", names, params)

    async def count_dead_letters(self) -> dict[str, int]:
        return {row[0]: row[1] for row in await self._database.fetch("count_dead_letters")}

    async def backlog(self) -> tuple[int, float]:
        """Items that could be worked on now, and the seconds that the oldest has waited."""
        items, seconds = (await self._database.fetch("backlog"))[0]
        return int(items), float(seconds)

    async def kill_switches(self) -> list[dict[str, Any]]:
        return await self._named("kill_switches", ("scope", "actor", "reason", "since"), {})

    async def gates(self) -> list[dict[str, Any]]:
        names = ("name", "spacing", "jitter", "concurrency", "next_at", "closed_until",
                 "reason", "closed")  # fmt: skip
        return await self._named("gates", names, {})

    async def schedules(self) -> list[dict[str, Any]]:
        names = ("name", "reference", "cron", "zone", "options", "enabled", "next_at",
                 "last_at", "last_job_id", "error")  # fmt: skip
        return await self._named("schedules", names, {})

    async def decisions(self, job_id: int, limit: int) -> list[dict[str, Any]]:
        names = ("what", "was", "became", "why", "worker", "at")
        return await self._named("decisions_of_job", names, {"job_id": job_id, "limit": limit})

    async def audit(self, job_id: int) -> list[dict[str, Any]]:
        names = ("actor", "action", "subject", "detail", "at")
        return await self._named("audit_of_job", names, {"job_id": job_id})

    async def queue_depth(self) -> list[tuple[str, int, float]]:
        """Pipeline, open items, age of the oldest in seconds."""
        rows = await self._database.fetch("queue_depth")
        return [(row[0], row[1], seconds_between(row[2], row[3])) for row in rows]

    async def _named(
        self, query: str, names: Sequence[str], params: dict[str, Any]
    ) -> list[dict[str, Any]]:
        rows = await self._database.fetch(query, params)
        return [
            {
                name: parse_instant(value) if _is_instant(name) else value
                for name, value in zip(names, row, strict=True)
            }
            for row in rows
        ]


def _is_instant(name: str) -> bool:
    return name in ("at", "since") or name.endswith(("_at", "_until"))


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


def job_of(row: Row) -> Job:
    values = [*row]
    values[3], values[6] = JobState(row[3]), Lane(row[6])
    values[9], values[10] = tuple(orjson.loads(row[9])), orjson.loads(row[10])
    values[13:18] = [parse_instant(value) for value in row[13:18]]
    return Job(*values)


def stream_view(row: Row) -> StreamView:
    values = [*row]
    values[13], values[15] = parse_instant(row[13]), parse_instant(row[15])
    values[16], values[17] = bool(row[16]), bool(row[17])
    values[19] = parse_instant(row[19])
    return StreamView(*values)


def _range_view(row: Row) -> RangeView:
    values = [*row]
    values[3], values[11], values[12] = bool(row[3]), bool(row[11]), bool(row[12])
    for place in (4, 6, 10):
        values[place] = parse_instant(row[place])
    return RangeView(*values)
