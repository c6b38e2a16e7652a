"""The pages and routes of meetings: municipalities, documents, search and streams."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter

from holdfast.server.navigation import Entry, PagePack
from holdfast_meetings.web.api import documents as documents_api
from holdfast_meetings.web.api import municipalities as municipalities_api
from holdfast_meetings.web.api import streams as streams_api
from holdfast_meetings.web.api import webhook
from holdfast_meetings.web.views import documents, municipalities, streams

_HERE = Path(__file__).parent
_HALL = "M2 14h12M3.5 14V7M6.5 14V7M9.5 14V7M12.5 14V7M1.5 6.5 8 2l6.5 4.5z"


def _together(*routers: APIRouter) -> APIRouter:
    whole = APIRouter()
    for router in routers:
        whole.include_router(router)
    return whole


PACK = PagePack(
    "meetings",
    _together(municipalities.router, documents.router, streams.router),
    _HERE / "templates",
    (Entry("meetings", "Meetings", "/meetings", "m", _HALL),),
    api=_together(
        municipalities_api.router, documents_api.router, streams_api.router, webhook.router
    ),
    machines=("/munis/api/",),
    static=_HERE / "static",
    streams="/meetings/streams",
)
