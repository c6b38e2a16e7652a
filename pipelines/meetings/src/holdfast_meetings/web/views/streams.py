"""The streams of meetings: which are complete, which failed, and how to resume them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from holdfast.errors import NotAllowed
from holdfast.model import JobState
from holdfast.server.context import Visitor
from holdfast.server.forms import OperatorPost, fields
from holdfast.server.shapes import Id
from holdfast_meetings.options import DocumentType, Mode
from holdfast_meetings.web.api import streams as api
from holdfast_meetings.web.api.shapes import find_municipality
from holdfast_meetings.web.views.municipalities import summary_of

router = APIRouter(prefix="/meetings/streams")

_PAGE_SIZE = 100
#: The value of a field of the filter; an empty one matches everything.
Choice = Annotated[str, Query(max_length=20)]


@router.get("")
async def index(
    visit: Visitor, status: Choice = "", mode: Choice = "", type: Choice = "",
    after: str | None = None,
) -> Response:  # fmt: skip
    state = JobState(status) if status in set(JobState) else None
    wanted = _failed(mode, type)
    page = await api.index(
        visit.person, visit.parts, state, wanted.mode, wanted.type, _PAGE_SIZE, after
    )
    context: dict[str, Any] = {"streams": page.streams, "next": page.next}
    context |= {"wanted": {"status": state or "", "mode": wanted.mode or "",
                        "type": wanted.type or ""}}  # fmt: skip
    failed = await api.failed_streams(wanted, visit.person, visit.parts)
    kinds = {"states": JobState, "modes": Mode, "types": DocumentType, "failed": len(failed)}
    return await visit.page("meetings/streams.html", here="meetings", **context, **kinds)


@router.get("/retry")
async def ask_retry(visit: Visitor, mode: Choice = "", type: Choice = "") -> Response:
    """Shows which streams a retry would resume."""
    if not visit.person.may_change:
        raise NotAllowed(f"{visit.person.name} has read-only access", "Ask an admin.")
    wanted = _failed(mode, type)
    failed = await api.failed_streams(wanted, visit.person, visit.parts)
    context: dict[str, Any] = {"failed": failed, "wanted": wanted}
    if visit.is_partial:
        return visit.part("meetings/ask_retry.html", **context)
    context |= {
        "title": "Streams",
        "question": "meetings/ask_retry.html",
        "back": "/meetings/streams",
    }
    return await visit.page("meetings/ask.html", here="meetings", **context)


@router.post("/retry")
async def retry_failed(visit: OperatorPost) -> Response:
    form = await fields(visit.request)
    wanted = _failed(form.get("mode", ""), form.get("type", ""))
    done = await api.retry_failed(wanted, visit.person, visit.parts)
    count = "1 stream was" if done.streams == 1 else f"{done.streams:,} streams were"
    return visit.go("/meetings/streams", f"{count} resumed from the last checkpoint.")


@router.get("/{stream_id}")
async def show(stream_id: Id, visit: Visitor) -> Response:
    detail = await api.show(stream_id, visit.person, visit.parts)
    municipality = await find_municipality(detail.stream.subdomain, visit.parts)
    context = {"stream": detail.stream, "counts": detail.counts, "slices": detail.slices}
    context |= {"municipality": municipality}
    return await visit.page("meetings/stream.html", here="meetings", **context)


@router.post("/{stream_id}/retry")
async def retry(stream_id: Id, visit: OperatorPost) -> Response:
    ordered = await api.retry(stream_id, visit.person, visit.parts)
    return visit.go(f"/meetings/streams/{stream_id}", f"{summary_of(ordered.decisions)}.")


def _failed(mode: str, type: str) -> api.Failed:
    return api.Failed(
        mode=Mode(mode) if mode in set(Mode) else None,
        type=DocumentType(type) if type in set(DocumentType) else None,
    )
