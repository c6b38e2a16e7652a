"""Documents, their pages, the search, and the export of a municipality."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import date
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from holdfast.errors import NotThere
from holdfast.model import Json
from holdfast.server.cursors import Cursors
from holdfast.server.dependencies import Parts
from holdfast.server.identity import PartsOf, Someone
from holdfast.server.shapes import Id
from holdfast.text_search import Part
from holdfast_meetings.exporting import MEDIA_TYPES, PageFormat, lines_of
from holdfast_meetings.options import DocumentType
from holdfast_meetings.reads import MeetingsReads
from holdfast_meetings.web.api.shapes import (
    After,
    DocumentDetail,
    DocumentList,
    DocumentShape,
    FoundList,
    FoundShape,
    PageDetail,
    PageList,
    PageShape,
    PageSize,
    PartShape,
    Subdomain,
    VersionShape,
    Words,
    find_municipality,
    pipeline_of,
    reads_of,
)

router = APIRouter(prefix="/api/meetings", tags=["meetings"])

Body = Annotated[str, Query(max_length=255)]
Day = Annotated[date | None, Query(examples=["2026-01-31"])]


@router.get("/municipalities/{subdomain}/documents", summary="List a municipality's documents")
async def documents(
    subdomain: Subdomain,
    person: Someone,
    parts: PartsOf,
    type: DocumentType | None = None,
    meeting: Body = "",
    since: Day = None,
    until: Day = None,
    page_size: PageSize = 100,
    after: After = None,
) -> DocumentList:
    """The newest come first."""
    municipality = await find_municipality(subdomain, parts)
    bound = {"in": subdomain, "type": type, "of": meeting, "since": since, "until": until}
    cursors = Cursors(parts.secret, "documents", person.name, bound)
    wanted: dict[str, Any] = {"meeting": meeting or None, "document_type": type}
    wanted |= {"since": since.isoformat()} if since else {}
    wanted |= {"until": until.isoformat()} if until else {}
    wanted |= _before(cursors.read(after))
    rows = await reads_of(parts).documents(municipality.id, limit=page_size + 1, **wanted)
    shown = [DocumentShape(**row) for row in rows[:page_size]]
    last = rows[page_size - 1] if len(rows) > page_size else None
    more = cursors.write([last["date"], last["id"]]) if last else None
    return DocumentList(documents=shown, next=more)


@router.get("/documents/{document_id}/pages", summary="List a document's pages")
async def pages(
    document_id: Id, person: Someone, parts: PartsOf, page_size: PageSize = 50, after: After = None
) -> PageList:
    """Includes vanished pages. Long texts are cut; the page itself has the whole text."""
    reads = reads_of(parts)
    document = await _document(document_id, reads)
    cursors = Cursors(parts.secret, "pages", person.name, {"of": document_id})
    position = cursors.read(after)
    start = -1 if position is None else position
    rows = await reads.pages(document_id, start, page_size + 1)
    shown = [PageShape(**_with_image(row, document, parts)) for row in rows[:page_size]]
    more = cursors.write(shown[-1].number) if len(rows) > page_size else None
    return PageList(document=document, pages=shown, next=more)


@router.get("/pages/{page_id}", summary="Show a page with its history")
async def page(page_id: Id, person: Someone, parts: PartsOf) -> PageDetail:
    return await _page(await page_row(page_id, parts), parts)


@router.get("/search", summary="Search the pages")
async def search(
    person: Someone,
    parts: PartsOf,
    q: Words,
    within: Annotated[str | None, Query(alias="in", max_length=190)] = None,
    page_size: PageSize = 50,
    after: After = None,
) -> FoundList:
    """Returns pages that contain all the words, newest first; words in quotes are a phrase."""
    if within:
        await find_municipality(within, parts)
    cursors = Cursors(parts.secret, "search", person.name, {"q": q, "in": within or None})
    before = _before(cursors.read(after))
    rows = await reads_of(parts).search(q, within or None, limit=page_size + 1, **before)
    shown = [FoundShape(**row | {"snippet": shown_parts(row["snippet"])}) for row in rows]
    last = rows[page_size - 1] if len(rows) > page_size else None
    more = cursors.write([last["date"], last["page_id"]]) if last else None
    return FoundList(pages=shown[:page_size], next=more)


@router.get(
    "/municipalities/{subdomain}/export",
    summary="Export every page of a municipality",
    response_class=StreamingResponse,
    responses={200: {"content": {kind: {} for kind in MEDIA_TYPES.values()}}},
)
async def export(
    subdomain: Subdomain, person: Someone, parts: PartsOf, format: PageFormat = PageFormat.JSONL
) -> StreamingResponse:
    """Pages come in order of date, document and number. Vanished pages are left out."""
    municipality = await find_municipality(subdomain, parts)

    async def lines() -> AsyncIterator[bytes]:
        async with aclosing(reads_of(parts).every_page(municipality.id)) as batches:
            async for part in lines_of(batches, format):
                yield part

    name = f"{subdomain}-pages.{format}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(lines(), media_type=MEDIA_TYPES[format], headers=headers)


async def page_row(page_id: int, parts: Parts) -> Json:
    row = await reads_of(parts).page(page_id)
    if row is None:
        raise NotThere(f"there is no page {page_id}", "Use the search to find pages.")
    return row


async def _page(row: Json, parts: Parts) -> PageDetail:
    reads = reads_of(parts)
    document = await _document(row["document_id"], reads)
    fields = _with_image(row, document, parts)
    fields.pop("document_id")
    history = [
        VersionShape(**{name: version[name] for name in VersionShape.model_fields})
        for version in await reads.versions(row["id"])
    ]
    return PageDetail(**fields, document=document, history=history)


async def _document(document_id: int, reads: MeetingsReads) -> DocumentDetail:
    row = await reads.document(document_id)
    if row is None:
        raise NotThere(f"there is no document {document_id}")
    return DocumentDetail(**row)


def _with_image(page: Json, document: DocumentDetail, parts: Parts) -> Json:
    url = pipeline_of(parts).image_url(document.subdomain, page["page_image"])
    fields = {name: value for name, value in page.items() if name != "page_image"}
    return {**fields, "image_url": url}


def shown_parts(parts: list[Part]) -> list[PartShape]:
    return [PartShape(text=text, found=found) for text, found in parts]


def _before(position: list[Any] | None) -> dict[str, tuple[str, int]]:
    return {} if position is None else {"before": (position[0], position[1])}
