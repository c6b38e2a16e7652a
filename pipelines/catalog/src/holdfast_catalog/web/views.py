"""The pages of shops and catalogues, and what the page of an item also shows."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import orjson
from fastapi import APIRouter, Path, Response
from fastapi.responses import StreamingResponse

from holdfast.errors import NotThere, UserError
from holdfast.features.jobs.pages_job import VisitedJob
from holdfast.features.rulings.rules import NewRuling, decide
from holdfast.rulings import RulingKind
from holdfast.server.context import Visitor
from holdfast.server.forms import OperatorPost, fields
from holdfast.server.shapes import LARGEST_ID, Id
from holdfast.stored_files import PIPELINES
from holdfast_catalog.providers.shops import with_local

router = APIRouter(prefix="/catalog")

Seq = Annotated[int, Path(ge=1, le=LARGEST_ID)]


@router.get("")
async def index(visit: Visitor) -> Response:
    """Shows the catalogues that were loaded, and the shops in the order in which they are asked."""
    shops = with_local(await visit.parts.fetch("catalog_providers"))
    for shop in shops:
        shop["settings"] = orjson.loads(shop["settings"])
        shop["settings"].pop("headers", None)  # they may contain keys
    sources = [dict(row) for row in await visit.parts.fetch("catalog_sources")]
    for source in sources:
        source["updated_at"] = _instant(source["updated_at"])
    return await visit.page("catalog/shops.html", here="catalog", shops=shops, sources=sources)


@router.get("/jobs/{job_id}/items/{seq}/searches")
async def searches(visited: VisitedJob, seq: Seq) -> Response:
    """Shows what shops were asked for an item, as part of its page."""
    params = {"job_id": visited.job.id, "seq": seq}
    events = await visited.visit.parts.fetch("catalog_search_events_of_item", params)
    return visited.visit.part("catalog/searches.html", events=events)


@router.get("/jobs/{job_id}/items/{seq}/thumbnail")
async def thumbnail(visited: VisitedJob, seq: Seq) -> Response:
    parts, params = visited.visit.parts, {"job_id": visited.job.id, "seq": seq}
    rows = await parts.fetch("catalog_photo", params)
    if not rows:
        raise NotThere(f"row {seq} is not a photograph")
    key = f"{PIPELINES}catalog/{rows[0]['thumbnail']}"
    headers = {"Cache-Control": "private, max-age=3600"}
    blocks = parts.library.access.store.stream(key)
    return StreamingResponse(blocks, media_type="image/webp", headers=headers)


@router.post("/jobs/{job_id}/items/{seq}/price")
async def set_price(visited: VisitedJob, visit: OperatorPost, seq: Seq) -> Response:
    """Sets a price that a person typed: a decision like any other."""
    form = await fields(visit.request)
    version = form.get("version", "0")
    new = NewRuling(
        RulingKind.EDIT,
        {"Price": form.get("price", "").strip()[:30]},
        form.get("reason", "")[:500].replace("\0", ""),
        visit.person.name,
        int(version) if version.isdecimal() and len(version) < 10 else 0,
    )
    page = f"/jobs/{visited.job.id}/items/{seq}"
    try:
        await decide(visit.parts.console, visit.parts.pipelines, visited.job, seq, new)
    except UserError as error:
        if type(error) is not UserError:
            raise
        # What was typed is wrong: the way back is the page itself.
        return visit.go(page, f"Not saved: {error.message}. {error.hint or ''}".strip())
    return visit.go(page, "Price saved.")


@router.get("/jobs/{job_id}")
async def figures(job_id: Id, visited: VisitedJob) -> Response:
    """Shows how often each shop was asked in a job, and how well it answered."""
    rows = await visited.visit.parts.fetch("catalog_provider_figures", {"job_id": job_id})
    return await visited.visit.page(
        "catalog/figures.html", here="catalog", job=visited.shape, figures=rows
    )


def _instant(value: datetime | str) -> datetime:
    """Parses an instant, which SQLite keeps as text."""
    return value if isinstance(value, datetime) else datetime.fromisoformat(value)
