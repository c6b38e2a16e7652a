"""Streams: how far each source has been read, what stopped it, and how to resume it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from holdfast.features.jobs import api_streams as api
from holdfast.model import StreamState
from holdfast.server.context import Visitor
from holdfast.server.forms import OperatorPost
from holdfast.server.shapes import Id

router = APIRouter(prefix="/streams")

_PAGE_SIZE = 100


@router.get("")
async def index(
    visit: Visitor,
    state: StreamState | None = None,
    pipeline: Annotated[str, Query(max_length=200)] = "",
    after: str | None = None,
) -> Response:
    page = await api.index(
        visit.person,
        visit.parts,
        state=state,
        pipeline=pipeline,
        page_size=_PAGE_SIZE,
        after=after,
    )
    context = {"streams": page.streams, "next": page.next, "state": state, "pipeline": pipeline}
    return await visit.page("streams.html", here="streams", states=StreamState, **context)


@router.get("/{stream_id}")
async def show(stream_id: Id, visit: Visitor) -> Response:
    detail = await api.show(stream_id, visit.person, visit.parts)
    return await visit.page(
        "stream.html", here="streams", stream=detail.stream, slices=detail.slices
    )


@router.post("/{stream_id}/retry")
async def retry(stream_id: Id, visit: OperatorPost) -> Response:
    job = await api.retry(stream_id, visit.person, visit.parts)
    return visit.go(f"/jobs/{job.id}/streams", "Stream resumed from where it stopped.")


@router.get("/{stream_id}/force-full")
async def force_full_dialog(stream_id: Id, visit: Visitor) -> Response:
    stream, job = await api.stream_with_job(stream_id, visit.person, visit.parts)
    return await visit.dialog("dialogs/force_full.html", here="streams", stream=stream, job=job)


@router.post("/{stream_id}/force-full")
async def force_full(stream_id: Id, visit: OperatorPost) -> Response:
    forced = await api.force_full(stream_id, visit.request, visit.person, visit.parts)
    if forced.job is None:
        note = f"The full re-read starts when job {forced.follows_job_id} ends."
        return visit.go(f"/jobs/{forced.follows_job_id}/streams", note)
    return visit.go(f"/jobs/{forced.job.id}/streams", "Full re-read started.")
