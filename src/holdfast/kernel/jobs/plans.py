"""Plans and conclusions: a pipeline decides about its streams in the transaction in which it reads
what the decision is based on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Protocol

import orjson

from holdfast.errors import HoldfastError, SwitchedOff, Throttled, UserError
from holdfast.kernel.arrivals.idempotency import RequestKey, note_made
from holdfast.kernel.database.database import Database, verb
from holdfast.kernel.database.driver import Row, Transaction
from holdfast.kernel.database.instants import parse_instant
from holdfast.kernel.database.rows import fields_of, known
from holdfast.kernel.gates.table import declare_gate
from holdfast.kernel.jobs.admission import admit_again
from holdfast.kernel.jobs.audit import add_audit
from holdfast.kernel.jobs.jobs import NewJob, create_job, resume_job
from holdfast.kernel.jobs.reads import job_of
from holdfast.model import JobState, StreamState, StreamStatus
from holdfast.orders import Conclusion, Mark, Planned, Resume, Start, Unproven, Verified
from holdfast.pipeline import Pipeline, with_defaults

_LONGEST_ERROR = 1000
#: Errors that carrying out a wrong conclusion or plan raises.
_WRONG = (UserError, AttributeError, TypeError, ValueError)


class Planner(Protocol):
    """A pipeline that plans or concludes, and how its orders become jobs."""

    @property
    def pipeline(self) -> Pipeline: ...

    @property
    def actor(self) -> str:
        """Who the audit log names for the orders."""
        ...

    def make_job(self, start: Start) -> NewJob: ...


@dataclass(frozen=True, slots=True)
class Carried:
    """The pipeline's answer to a request, and the jobs that its orders started or resumed."""

    answer: Any
    job_ids: list[int]


class Plans:
    def __init__(self, database: Database) -> None:
        self._database = database

    @verb
    async def plan(
        self,
        tx: Transaction,
        planner: Planner,
        request: Mapping[str, Any],
        key: RequestKey | None = None,
    ) -> Carried:
        """Lets the pipeline decide and carries out its orders, one request at a time per pipeline:
        the second of two simultaneous requests sees what the first started. The last job that it
        started is noted under the `key`."""
        carried = await plan_and_carry_out(tx, planner, request)
        if carried.job_ids:
            await note_made(tx, key, carried.job_ids[-1])
        return carried

    @verb
    async def change(
        self, tx: Transaction, actor: str, change: Callable[[Transaction], Awaitable[Planned]]
    ) -> Any:
        """Changes an extension's own rows, with entries in the audit log."""
        planned = await change(tx)
        for act in planned.acts:
            await add_audit(tx, actor, act.action, None, act.subject, act.detail)
        return planned.answer

    async def streams(self, pipeline: str) -> list[StreamStatus]:
        rows = await self._database.fetch("all_plan_streams", {"pipeline": pipeline})
        return [_stream(row) for row in rows]

    @verb
    async def tend(self, tx: Transaction, tend: Callable[[Transaction], Awaitable[bool]]) -> bool:
        """Runs one step of a pipeline's background work."""
        return await tend(tx)


async def plan_and_carry_out(
    tx: Transaction, planner: Planner, request: Mapping[str, Any]
) -> Carried:
    pipeline = planner.pipeline
    await tx.fetch("hold_input", {"input": f"{pipeline.name} plan"})
    streams = partial(_streams, tx, pipeline.name)
    planned = await pipeline.plan(tx, dict(request), streams, await _now(tx))
    return Carried(planned.answer, await carry_out(tx, planner, planned))


async def carry_out(tx: Transaction, planner: Planner, planned: Planned) -> list[int]:
    """Carries out the orders; returns the jobs that they started or resumed."""
    job_ids = []
    for act in planned.acts:
        await add_audit(tx, planner.actor, act.action, None, act.subject, act.detail)
    for order in planned.orders:
        if isinstance(order, Start):
            job_ids.append(await _start(tx, planner, order))
        elif isinstance(order, Resume):
            await admit_again(tx, order.job_id)
            await resume_job(tx, order.job_id, planner.actor)
            job_ids.append(order.job_id)
        elif isinstance(order, Mark):
            marks = {"force_full": int(order.force_full), "rerun": int(order.rerun)}
            await tx.run("mark_stream", {"id": order.stream_id, **marks})
            await add_audit(tx, planner.actor, "stream.marked", None, str(order.stream_id), marks)
    return job_ids


async def _start(tx: Transaction, planner: Planner, start: Start) -> int:
    job_id = await create_job(tx, planner.make_job(start), planner.actor)
    for gate in start.gates:
        await declare_gate(tx, gate)
    for source in start.sources:
        stream = {"pipeline": planner.pipeline.name, "source": source, "mode": start.mode}
        await tx.run("clear_marks", stream)
    return job_id


class ConclusionFailed(HoldfastError):
    """The pipeline's own code raised at the end of a job; the transaction was rolled back."""


@contextmanager
def _failures_of(
    method: str, database: Database, kinds: tuple[type[Exception], ...] = (Exception,)
) -> Iterator[None]:
    try:
        yield
    except kinds as error:
        if database.driver.is_passing(error):
            raise
        detail = f"{type(error).__name__}: {error}"[:_LONGEST_ERROR]
        raise ConclusionFailed(f"`{method}` of the pipeline failed: {detail}") from error


async def conclude_streams(
    tx: Transaction, job_id: int, planner: Planner, database: Database
) -> bool:
    """Asks the pipeline about each complete stream; returns False if one has to be read further."""
    job = with_defaults(planner.pipeline, job_of((await tx.fetch("job", {"job_id": job_id}))[0]))
    complete = True
    for row in await tx.fetch("plan_streams_of_job", {"job_id": job_id}):
        stream = _stream(row)
        if stream.state is StreamState.COMPLETE:
            with _failures_of("conclude", database):
                conclusion = await planner.pipeline.conclude(tx, job, stream)
            with _failures_of("conclude", database, _WRONG):
                ends = await _conclude(tx, job_id, stream.stream_id, conclusion)
            complete = ends and complete
    return complete


async def follow_up(tx: Transaction, job_id: int, planner: Planner, database: Database) -> None:
    """Starts what was requested while the job ran, in the transaction that ends it, so that no
    webhook is lost."""
    if not planner.pipeline.plans:
        return
    for row in await tx.fetch("plan_streams_of_job", {"job_id": job_id}):
        streams = partial(_streams, tx, planner.pipeline.name)
        request = {"follow": _stream(row).source}
        now = await _now(tx)
        with _failures_of("plan", database):
            planned = await planner.pipeline.plan(tx, request, streams, now)
        # Refused before anything of the job is written. The request stays marked in the stream, for
        # the next plan.
        with _failures_of("plan", database, _WRONG), suppress(SwitchedOff, Throttled):
            await carry_out(tx, planner, planned)


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
    return False


async def _streams(
    tx: Transaction, pipeline: str, sources: Sequence[str] | None
) -> list[StreamStatus]:
    if sources is None:
        rows = await tx.fetch("all_plan_streams", {"pipeline": pipeline})
    else:
        named = {"pipeline": pipeline, "sources": list(sources)}
        await tx.fetch("hold_jobs_of_streams", named)
        rows = await tx.fetch("plan_streams", named)
    return [_stream(row) for row in rows]


def _stream(row: Row) -> StreamStatus:
    fields = fields_of(row)
    return StreamStatus(
        **fields
        | {
            "state": known(StreamState.FAILED, fields["state"]),
            "cursor": orjson.loads(fields["cursor"])["page"] if fields["cursor"] else None,
            "job_state": known(JobState.FAILED, fields["job_state"]),
            "force_full": bool(fields["force_full"]),
            "rerun_requested": bool(fields["rerun_requested"]),
        }
    )


async def _now(tx: Transaction) -> datetime:
    now = parse_instant((await tx.fetch("database_now"))[0][0])
    assert now is not None
    return now
