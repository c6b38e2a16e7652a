"""Streams: how far each source was walked, what stopped it, and how to go on."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from holdfast.api import streams as api
from holdfast.api.shapes import Id
from holdfast.model import StreamState
from holdfast.web.visit import Changing, Visitor

router = APIRouter(prefix="/streams")

_PAGE_SIZE = 100


@router.get("")
async def index(
    visit: Visitor,
    state: StreamState | None = None,
    pipeline: Annotated[str, Query(max_length=200)] = "",
    after: str | None = None,
) -> Response:
    found = await api.index(visit.person, visit.parts, state, pipeline, _PAGE_SIZE, after)
    told = {"streams": found.streams, "next": found.next, "state": state, "pipeline": pipeline}
    return await visit.page("streams.html", here="streams", states=StreamState, **told)


@router.get("/{stream_id}")
async def show(stream_id: Id, visit: Visitor) -> Response:
    found = await api.show(stream_id, visit.person, visit.parts)
    return await visit.page("stream.html", here="streams", stream=found.stream, slices=found.slices)


@router.post("/{stream_id}/retry")
async def retry(stream_id: Id, visit: Changing) -> Response:
    job = await api.retry(stream_id, visit.request, visit.person, visit.parts)
    return visit.go(f"/jobs/{job.id}/streams", "It goes on from where it stopped.")


@router.get("/{stream_id}/force-full")
async def ask_force_full(stream_id: Id, visit: Visitor) -> Response:
    stream, job = await api.stream_with_job(stream_id, visit.person, visit.parts)
    told = {"stream": stream, "job": job}
    if visit.is_partial:
        return visit.part("ask/force_full.html", **told)
    return await visit.page("ask.html", here="streams", question="ask/force_full.html", **told)


@router.post("/{stream_id}/force-full")
async def force_full(stream_id: Id, visit: Changing) -> Response:
    forced = await api.force_full(stream_id, visit.request, visit.person, visit.parts)
    if forced.job is None:
        note = f"It begins as soon as job {forced.follows_job_id} ends."
        return visit.go(f"/jobs/{forced.follows_job_id}/streams", note)
    return visit.go(f"/jobs/{forced.job.id}/streams", "It is walked anew, from its beginning.")
