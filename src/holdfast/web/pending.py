"""Pending items of all jobs; an admin can switch the page off."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Response

from holdfast.api import pending as api
from holdfast.api.flags import require_flag
from holdfast.console.feature_flags import Flag
from holdfast.web.context import Visitor

router = APIRouter()

_PAGE_SIZE = 100
_OPEN = "PENDING,PROCESSING"


@router.get("/pending", dependencies=[Depends(require_flag(Flag.PENDING))])
async def index(
    visit: Visitor,
    statuses: Annotated[str, Query(max_length=100)] = _OPEN,
    of: Literal["me", "all"] | None = None,
    pipeline: Annotated[str, Query(max_length=200)] = "",
    after: str | None = None,
) -> Response:
    owner = of or ("me" if visit.person.scope else "all")
    page = await api.index(
        visit.person,
        visit.parts,
        statuses=statuses,
        user_id=owner,
        job_type=pipeline or None,
        page_size=_PAGE_SIZE,
        after=after,
    )
    context = {
        "items": page.items,
        "next": page.next,
        "count": page.pending_count,
        "statuses": statuses,
        "owner": owner,
        "pipeline": pipeline,
        "names": sorted(visit.parts.pipelines),
    }
    if after is not None:
        return visit.part("parts/all_pending_rows.html", **context)
    return await visit.page("pending.html", here="pending", **context)
