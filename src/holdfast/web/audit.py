"""The audit: who did what, when and why."""

from __future__ import annotations

from fastapi import APIRouter, Response

from holdfast.api import audit as api
from holdfast.web.visit import Visitor

router = APIRouter()

_PAGE_SIZE = 100


@router.get("/audit")
async def index(visit: Visitor, after: str | None = None) -> Response:
    found = await api.index(visit.person, visit.parts, None, _PAGE_SIZE, after)
    told = {"audited": found.entries, "next": found.next}
    if after is not None:
        return visit.part("parts/audit_rows.html", **told)
    return await visit.page("audit.html", here="audit", **told)
