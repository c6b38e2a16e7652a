"""Plans and conclusions: what a pipeline decides about its streams, in one transaction with what
it read to decide it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from holdfast.model import JobState, SliceKind, Standing, StreamState
from holdfast.pipeline import (
    Conclusion,
    Mark,
    Planned,
    Resume,
    Standings,
    Start,
    Unproven,
    Verified,
)
from holdfast.store.announcements import announce
from holdfast.store.audit import add_audit
from holdfast.store.database import Database
from holdfast.store.driver import Row, Transaction
from holdfast.store.instants import instant_parameter, parse_instant
from holdfast.store.jobs import NewJob, create_job, resume_job
from holdfast.store.upkeep_table import DueSchedule

#: A pipeline's `plan` for one request.
Plan = Callable[[Transaction, Standings, datetime], Awaitable[Planned]]

#: The job that a Start asks for.
MakeJob = Callable[[Start], NewJob]


@dataclass(frozen=True, slots=True)
class Orders:
    """How a pipeline's orders are carried out, and for whom."""

    pipeline: str
    actor: str
    make_job: MakeJob


@dataclass(frozen=True, slots=True)
class Carried:
    """What became of a request: the jobs that its orders started or resumed."""

    answer: Any
    job_ids: list[int]


@dataclass(frozen=True, slots=True)
class Ending:
    """What the pipeline of a job has to say about its end."""

    orders: Orders
    conclude: Callable[[Transaction, Standing], Awaitable[Conclusion]]
    follow: Callable[[Transaction, str, Standings, datetime], Awaitable[Planned]]


class Plans:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def plan(self, orders: Orders, plan: Plan) -> Carried:
        """Lets the pipeline decide and does what it orders. One at a time for each pipeline: of
        two requests at once, the second finds what the first began."""

        async def body(tx: Transaction) -> Carried:
            await tx.fetch("hold_input", {"input": f"{orders.pipeline} plan"})
            planned = await plan(tx, _standings(tx, orders.pipeline), await _now(tx))
            return Carried(planned.answer, await carry_out(tx, orders, planned))

        return await self._database.write("plan", body)

    async def fire_plan(
        self, due: DueSchedule, next_at: datetime, orders: Orders, plan: Plan
    ) -> list[int]:
        """The same when a schedule is due, which is moved on with it; nothing when another
        sweeper did so first."""
        instant = instant_parameter(self._database.driver.dialect, next_at)
        firing = {"name": due.name, "was": due.next_at, "next_at": instant}

        async def body(tx: Transaction) -> list[int]:
            if not await tx.take("fire_schedule", firing):
                return []
            await tx.fetch("hold_input", {"input": f"{orders.pipeline} plan"})
            planned = await plan(tx, _standings(tx, orders.pipeline), await _now(tx))
            job_ids = await carry_out(tx, orders, planned)
            last = job_ids[-1] if job_ids else None
            await tx.run("note_schedule", {"name": due.name, "job_id": last, "error": None})
            return job_ids

        return await self._database.write("fire_plan", body)

    async def standings(self, pipeline: str) -> list[Standing]:
        rows = await self._database.fetch("all_standings", {"pipeline": pipeline})
        return [_standing(row) for row in rows]

    async def tend(self, tend: Callable[[Transaction], Awaitable[bool]]) -> bool:
        """A piece of a pipeline's work in the background."""

        async def body(tx: Transaction) -> bool:
            return await tend(tx)

        return await self._database.write("tend", body)


async def carry_out(tx: Transaction, orders: Orders, planned: Planned) -> list[int]:
    job_ids = []
    for act in planned.acts:
        await add_audit(tx, orders.actor, act.action, None, act.subject, act.detail)
    for order in planned.orders:
        if isinstance(order, Start):
            job_ids.append(await create_job(tx, orders.make_job(order), orders.actor))
            source = {"pipeline": orders.pipeline, "source": order.source, "mode": order.mode}
            await tx.run("clear_marks", source)
        elif isinstance(order, Resume):
            await resume_job(tx, order.job_id, orders.actor)
            job_ids.append(order.job_id)
        elif isinstance(order, Mark):
            marks = {"force_full": int(order.force_full), "rerun": int(order.rerun)}
            await tx.run("mark_stream", {"id": order.stream_id, **marks})
            await add_audit(tx, orders.actor, "stream.marked", None, str(order.stream_id), marks)
    return job_ids


async def conclude_streams(tx: Transaction, job_id: int, ending: Ending) -> bool:
    """Asks the pipeline about each stream that ended; False if one has to be walked on."""
    complete = True
    for row in await tx.fetch("standings_of_job", {"job_id": job_id}):
        standing = _standing(row)
        if standing.state is StreamState.COMPLETE:
            conclusion = await ending.conclude(tx, standing)
            complete = await _conclude(tx, job_id, standing.stream_id, conclusion) and complete
    return complete


async def follow_up(tx: Transaction, job_id: int, ending: Ending) -> None:
    """Starts what was asked for while the job ran, with its end: no webhook is lost."""
    for row in await tx.fetch("standings_of_job", {"job_id": job_id}):
        standings = _standings(tx, ending.orders.pipeline)
        planned = await ending.follow(tx, _standing(row).source, standings, await _now(tx))
        await carry_out(tx, ending.orders, planned)


async def _conclude(tx: Transaction, job_id: int, stream_id: int, conclusion: Conclusion) -> bool:
    if isinstance(conclusion, Verified):
        counts = {
            "expected_count": conclusion.expected_count,
            "actual_count": conclusion.actual_count,
            "proven": int(conclusion.proven),
        }
        await tx.run("verify_stream", {"id": stream_id, **counts})
        return True
    cursor = orjson.dumps({"page": conclusion.cursor, "skip": 0}).decode()
    position = {"id": stream_id, "cursor": cursor}
    if isinstance(conclusion, Unproven):
        await tx.run("refuse_stream", {**position, "error": conclusion.error})
        return True
    await tx.run("reopen_stream", {**position, "delay": conclusion.delay})
    await tx.run("undiscover_job", {"job_id": job_id})
    await announce(tx, job_id, SliceKind.DISCOVER, conclusion.delay)
    return False


def _standings(tx: Transaction, pipeline: str) -> Standings:
    async def standings(sources: Sequence[str] | None) -> list[Standing]:
        if sources is None:
            rows = await tx.fetch("all_standings", {"pipeline": pipeline})
        else:
            named = {"pipeline": pipeline, "sources": list(sources)}
            await tx.fetch("hold_jobs_of_streams", named)
            rows = await tx.fetch("standings", named)
        return [_standing(row) for row in rows]

    return standings


def _standing(row: Row) -> Standing:
    values = [*row]
    values[3], values[9] = StreamState(row[3]), JobState(row[9])
    values[5] = orjson.loads(row[5])["page"] if row[5] else None
    values[10], values[11] = parse_instant(row[10]), parse_instant(row[11])
    values[12], values[13] = bool(row[12]), bool(row[13])
    return Standing(*values)


async def _now(tx: Transaction) -> datetime:
    now = parse_instant((await tx.fetch("database_now"))[0][0])
    assert now is not None
    return now
