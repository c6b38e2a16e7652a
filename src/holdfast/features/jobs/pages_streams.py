"""Streams: how far each source has been read, what stopped it, and how to resume it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from holdfast.features.jobs.stream_shapes import stream_detail, stream_orders, streams_page
from holdfast.model import StreamState
from holdfast.server.context import Visitor
from holdfast.server.forms import OperatorPost
from holdfast.server.idempotency import request_key
from holdfast.server.identity import ip_of
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
    page = await streams_page(visit.person, visit.parts, _PAGE_SIZE, after, state, pipeline)
    context = {"streams": page.streams, "next": page.next, "state": state, "pipeline": pipeline}
    return await visit.page("streams.html", here="streams", states=StreamState, **context)


@router.get("/{stream_id}")
async def show(stream_id: Id, visit: Visitor) -> Response:
    detail = await stream_detail(stream_id, visit.person, visit.parts)
    return await visit.page(
        "stream.html", here="streams", stream=detail.stream, slices=detail.slices
    )


@router.post("/{stream_id}/retry")
async def retry(stream_id: Id, visit: OperatorPost) -> Response:
    job_id = await stream_orders(visit.person, visit.parts).resume(stream_id)
    return visit.go(f"/jobs/{job_id}/streams", "Stream resumed from where it stopped.")


@router.get("/{stream_id}/force-full")
async def force_full_dialog(stream_id: Id, visit: Visitor) -> Response:
    stream, job = await stream_orders(visit.person, visit.parts).of(stream_id)
    return await visit.dialog("dialogs/force_full.html", here="streams", stream=stream, job=job)


@router.post("/{stream_id}/force-full")
async def force_full(stream_id: Id, visit: OperatorPost) -> Response:
    orders = stream_orders(visit.person, visit.parts)
    request = visit.request
    job_id, started = await orders.force_full(stream_id, ip_of(request), request_key(request))
    note = (
        "Full re-read started." if started else f"The full re-read starts when job {job_id} ends."
    )
    return visit.go(f"/jobs/{job_id}/streams", note)
