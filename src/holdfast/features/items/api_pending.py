"""Pending items of all jobs: what is waiting, since when, and which worker has it."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query

from holdfast.features.items.params import (
    After,
    From,
    NoOffset,
    PageSize,
    Statuses,
    To,
    refuse_offsets,
)
from holdfast.features.items.pending_shapes import PendingList, PendingRequest, pending_page
from holdfast.features.switches.flag_needed import require_flag
from holdfast.features.switches.flags import Flag
from holdfast.server.identity import PartsOf, Someone
from holdfast.server.shapes import Id

router = APIRouter(prefix="/api/pending", tags=["items"])


@router.get(
    "",
    summary="List pending items across all jobs",
    dependencies=[Depends(require_flag(Flag.PENDING))],
)
async def index(
    person: Someone,
    parts: PartsOf,
    statuses: Statuses = "PENDING,PROCESSING",
    status: Annotated[str, Query(include_in_schema=False)] = "",
    user_id: Annotated[Literal["me", "all"], Query(alias="userId")] = "me",
    pipeline: Annotated[str | None, Query(max_length=200)] = None,
    job_id: Annotated[Id | None, Query(alias="jobId")] = None,
    since: From = None,
    until: To = None,
    page_size: PageSize = 100,
    after: After = None,
    page: NoOffset = None,
    sort: NoOffset = None,
) -> PendingList:
    """The longest waiting come first. `userId=all` is for users who can see all jobs."""
    refuse_offsets(page, sort)
    request = PendingRequest(status or statuses, user_id, pipeline, job_id, since, until)
    return await pending_page(request, person, parts, page_size, after)
