"""Everything about one item: input, result, attempts, and why it is not being processed."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response

from holdfast.api import items as api
from holdfast.api.shapes import LARGEST_ID
from holdfast.errors import error_code
from holdfast.web.job import VisitedJob
from holdfast.web.reasons import shown_reason

router = APIRouter()


@router.get("/jobs/{job_id}/items/{seq}")
async def show(visited: VisitedJob, seq: Annotated[int, Path(ge=1, le=LARGEST_ID)]) -> Response:
    visit, job = visited.visit, visited.job
    item = await api.show(job, seq, visit.person, visit.parts)
    pipeline = visit.parts.pipelines.get(job.pipeline)
    own_codes = dict(pipeline.error_codes) if pipeline else {}
    return await visit.page(
        "item.html",
        here="jobs",
        job=visited.shape,
        item=item,
        known=error_code(item.error_code, own_codes) if item.error_code else None,
        why=shown_reason(job, item.why),
    )
