from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, Response

from holdfast.server.context import Visitor
from holdfast.server.navigation import Entry, PagePack

router = APIRouter()


@router.get("/tides")
async def page(visit: Visitor) -> Response:
    heights = await visit.parts.fetch("tides_heights")
    return await visit.page("tides/heights.html", here="tides", heights=heights)


PACK = PagePack(
    "tides",
    router,
    Path(__file__).parent / "templates",
    (Entry("tides", "Tides", "/tides", "t", icon="M2 10c2-3 4-3 6 0s4 3 6 0"),),
)
