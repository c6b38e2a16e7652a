"""Jobs as programs and people see them."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

from pydantic import Field

from holdfast.errors import error_code
from holdfast.features.accounts.person import Person
from holdfast.features.jobs.live import Rates
from holdfast.features.jobs.new_jobs import FileChoice as FileChoice
from holdfast.features.jobs.reads import CountedJob, states_of
from holdfast.features.jobs.why import why_not_running
from holdfast.kernel.jobs.control import JobRequest as JobRequest
from holdfast.model import Job, is_idle
from holdfast.server.cursors import Cursors
from holdfast.server.dependencies import Parts
from holdfast.server.shapes import Counts, JobList, JobShape, Shape, Why

_COUNTS = tuple(Counts.model_fields)


class ErrorGroup(Shape):
    code: str | None
    category: str = Field(examples=["network"])
    retry: str = Field(examples=["soon"], description="When such an error is retried.")
    alert: bool = Field(description="A person has to look: credentials, or a changed format.")
    count: int
    exact: bool = Field(description="False: estimated from the latest 10,000 errors.")
    first_at: datetime | None
    last_at: datetime | None
    sample: str | None


class PaceChange(Shape):
    what: str = Field(examples=["claim"])
    was: float
    became: float
    why: str
    worker: str
    at: datetime | None


async def describe_job(job: Job, person: Person, parts: Parts) -> JobShape:
    (counted,) = await parts.console.jobs.counted([job])
    parts.rates.observe(counted)
    reason = await why_not_running(parts.console, job, parts.options.backfill_enabled)
    shape = job_shape(counted, person, parts.rates)
    if reason is not None:
        shape.why = Why(kind=reason.kind, text=reason.text, until=reason.until)
    return shape


def job_shape(counted: CountedJob, person: Person, rates: Rates) -> JobShape:
    job, counters = counted.job, counted.counters
    fields = {name: getattr(job, name) for name in JobShape.model_fields if hasattr(job, name)}
    fields |= {
        "job_id": job.id,
        "job_type": job.input_kind,
        "idle": is_idle(job, counters),
        "columns": list(job.columns),
        "options": job.options,
        "read_as": list(job.reading.read_as),
        "ip": job.ip if person.may_change else None,
        "heartbeat_at": counted.heartbeat_at,
        "counters": Counts(**{name: getattr(counters, name) for name in _COUNTS}),
        "rate_per_second": rates.per_second(counted),
        "eta_seconds": rates.seconds_left(counted),
    }
    return JobShape(**fields)


async def jobs_page(
    person: Person,
    parts: Parts,
    size: int,
    after: str | None = None,
    states: str = "",
    pipelines: str = "",
) -> JobList:
    """Returns the newest jobs first: their own, or those of everyone for admins and readers."""
    filter = {
        "states": states_of(states),
        "pipelines": [name for name in pipelines.split(",") if name],
    }

    async def read(before: int | None, limit: int) -> list[CountedJob]:
        return await parts.console.jobs.page(
            person.scope, limit, before, filter["states"], filter["pipelines"]
        )

    cursors = Cursors(parts.secret, "jobs", person.name, filter)
    jobs, more = await cursors.page(after, size, read, lambda counted: counted.job.id)
    shapes = [job_shape(counted, person, parts.rates) for counted in jobs]
    return JobList(jobs=shapes, next=more)


async def error_groups(job: Job, parts: Parts) -> list[ErrorGroup]:
    """Groups a job's errors by code. Counts are exact up to 10,000 errors, estimated beyond."""
    pipeline = parts.pipelines.get(job.pipeline)
    own_codes = dict(pipeline.error_codes) if pipeline else {}
    groups = []
    for group in await parts.console.jobs.errors_by_code(job.id):
        code = error_code(group.code or "UNKNOWN_ERROR", own_codes)
        described = ErrorGroup(
            **asdict(group), category=code.category, retry=code.retry, alert=code.alert
        )
        groups.append(described)
    return groups


async def pace_changes(job: Job, parts: Parts, limit: int) -> list[PaceChange]:
    """Lists what the controllers of a job changed, the newest first."""
    changes = await parts.console.jobs.decisions(job.id, limit)
    return [PaceChange(**change) for change in changes]
