"""The page of the audit log."""

from __future__ import annotations

from fastapi import APIRouter, Response

from holdfast.features.audit import api
from holdfast.server.context import Visitor

router = APIRouter()

_PAGE_SIZE = 100


@router.get("/audit")
async def index(visit: Visitor, after: str | None = None) -> Response:
    log = await api.index(visit.person, visit.parts, page_size=_PAGE_SIZE, after=after)
    context = {"log": log.entries, "next": log.next}
    if after is not None:
        return visit.part("parts/audit_rows.html", **context)
    return await visit.page("audit.html", here="audit", **context)
