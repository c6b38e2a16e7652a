"""Everything pending, over all jobs; an admin may switch the page off."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Response

from holdfast.api import pending as api
from holdfast.api.flags import Flag, require_flag
from holdfast.web.visit import Visitor

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
    whose = of or ("me" if visit.person.scope else "all")
    found = await api.index(
        visit.request,
        visit.person,
        visit.parts,
        statuses=statuses,
        user_id=whose,
        job_type=pipeline or None,
        page_size=_PAGE_SIZE,
        after=after,
    )
    told = {
        "items": found.items,
        "next": found.next,
        "count": found.pending_count,
        "statuses": statuses,
        "whose": whose,
        "pipeline": pipeline,
        "names": sorted(visit.parts.pipelines),
    }
    if after is not None:
        return visit.part("parts/all_pending_rows.html", **told)
    return await visit.page("pending.html", here="pending", **told)
