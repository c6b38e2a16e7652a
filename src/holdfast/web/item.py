"""One item's whole story: what went in, what came of it, and why it does not run."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response

from holdfast.api import items as api
from holdfast.api.shapes import LARGEST_ID
from holdfast.errors import error_code
from holdfast.web.job import ShownJob
from holdfast.web.reasons import told_why

router = APIRouter()


@router.get("/jobs/{job_id}/items/{seq}")
async def show(shown: ShownJob, seq: Annotated[int, Path(ge=1, le=LARGEST_ID)]) -> Response:
    visit, job = shown.visit, shown.job
    item = await api.show(job, seq, visit.person, visit.parts)
    pipeline = visit.parts.pipelines.get(job.pipeline)
    own = dict(pipeline.error_codes) if pipeline else {}
    return await visit.page(
        "item.html",
        here="jobs",
        job=shown.shape,
        item=item,
        known=error_code(item.error_code, own) if item.error_code else None,
        why=told_why(job, item.why),
    )
