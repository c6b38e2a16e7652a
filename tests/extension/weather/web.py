from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, Depends, Response

from holdfast.errors import NotThere
from holdfast.features.switches.flag_needed import require_flag
from holdfast.server.context import Visitor
from holdfast.server.identity import PartsOf
from holdfast.server.navigation import Entry, PagePack

_HERE = Path(__file__).parent
router, api = APIRouter(), APIRouter()


@router.get("/weather")
async def page(visit: Visitor) -> Response:
    readings = await visit.parts.fetch("weather_readings")
    return await visit.page("weather/stations.html", here="weather", readings=readings)


@api.get("/stations/count", summary="Show the number of stations", tags=["weather"])
async def count(parts: PartsOf) -> int:
    stations: int = parts.pipelines["weather"].settings.stations  # type: ignore[attr-defined]
    return stations


@api.get(
    "/stations/radar",
    summary="Show the radar image",
    tags=["weather"],
    dependencies=[Depends(require_flag("weather_radar"))],
)
async def radar(parts: PartsOf) -> None:
    raise NotThere("there is no radar image yet")


PACK = PagePack(
    "weather",
    router,
    _HERE / "templates",
    (Entry("weather", "Weather", "/weather", "w", icon="M2 8h12"),),
    api=api,
    machines=("/stations/",),
    static=_HERE / "static",
)
