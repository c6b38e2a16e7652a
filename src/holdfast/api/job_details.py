"""More about a job: its errors by code, and how it adapted."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from holdfast.api.identity import PartsOf
from holdfast.api.jobs import ScopedJob
from holdfast.api.shapes import Shape
from holdfast.errors import error_code

router = APIRouter(prefix="/api/jobs/{jobId}", tags=["jobs"])


class ErrorGroup(Shape):
    code: str | None
    category: str = Field(examples=["network"])
    retry: str = Field(examples=["soon"], description="How such an error is tried again.")
    count: int
    exact: bool = Field(description="False: estimated from the latest 10,000 errors.")
    first_at: datetime | None
    last_at: datetime | None
    sample: str | None


class ErrorGroups(Shape):
    errors: list[ErrorGroup]


class Decision(Shape):
    what: str = Field(examples=["claim"])
    was: float
    became: float
    why: str
    worker: str
    at: datetime | None


class Decisions(Shape):
    decisions: list[Decision]


@router.get("/errors", summary="A job's errors by code")
async def errors(job: ScopedJob, parts: PartsOf) -> ErrorGroups:
    """Counted exactly up to 10,000 errors; of more, estimated."""
    pipeline = parts.pipelines.get(job.pipeline)
    own = dict(pipeline.error_codes) if pipeline else {}
    groups = []
    for found in await parts.console.jobs.errors_by_code(job.id):
        known = error_code(found.code or "UNKNOWN_ERROR", own)
        groups.append(ErrorGroup(**asdict(found), category=known.category, retry=known.retry))
    return ErrorGroups(errors=groups)


@router.get("/decisions", summary="What the controllers of a job changed, and why")
async def decisions(
    job: ScopedJob,
    parts: PartsOf,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Decisions:
    """The latest first."""
    found = await parts.console.jobs.decisions(job.id, limit)
    return Decisions(decisions=[Decision(**each) for each in found])
