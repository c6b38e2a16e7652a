"""The pages of meetings: municipalities to read and to look after, and their streams."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter

from holdfast.pipelines.meetings.pages.api import documents as documents_api
from holdfast.pipelines.meetings.pages.api import municipalities as municipalities_api
from holdfast.pipelines.meetings.pages.api import streams as streams_api
from holdfast.pipelines.meetings.pages.views import documents, municipalities, streams
from holdfast.web.navigation import Entry, PagePack

_HERE = Path(__file__).parent


def _together(*routers: APIRouter) -> APIRouter:
    whole = APIRouter()
    for router in routers:
        whole.include_router(router)
    return whole


PAGES = PagePack(
    "meetings",
    _together(municipalities.router, documents.router, streams.router),
    _HERE / "templates",
    (Entry("meetings", "Meetings", "/meetings", "m", "meetings"),),
    api=_together(municipalities_api.router, documents_api.router, streams_api.router),
    static=_HERE / "static",
    streams="/meetings/streams",
)
