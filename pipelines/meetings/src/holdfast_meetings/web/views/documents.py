"""A document, a page with its history, and the search."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from holdfast.server.context import Visitor
from holdfast.server.shapes import Id
from holdfast.server.text_diff import compare_versions
from holdfast.text_search import search_query
from holdfast_meetings.saving import DUPLICATE
from holdfast_meetings.web.api import documents as api
from holdfast_meetings.web.api.shapes import Words, find_municipality, reads_of
from holdfast_meetings.web.views.wording import WORDS

router = APIRouter(prefix="/meetings")

_PAGE_SIZE = 25
_RESULT_COUNT = 30


@router.get("/documents/{document_id}")
async def document(document_id: Id, visit: Visitor, after: str | None = None) -> Response:
    detail = await api.pages(document_id, visit.person, visit.parts, _PAGE_SIZE, after)
    context = {"document": detail.document, "pages": detail.pages, "next": detail.next}
    context |= {"after": after}
    return await visit.page("meetings/document.html", here="meetings", **context, **WORDS)


@router.get("/pages/{page_id}")
async def page(page_id: Id, visit: Visitor, q: Words = "") -> Response:
    """Shows a page with the words of `q` marked."""
    row = await api.page_row(page_id, visit.parts)
    shown = await api.page(page_id, visit.person, visit.parts)
    parts = api.shown_parts(await reads_of(visit.parts).highlighted(row, q))
    # A duplicate row of the site is not an earlier version of the page.
    versions = [version for version in shown.history if version.state != DUPLICATE]
    changes = await compare_versions([shown.text, *(version.text for version in versions)])
    by_id = {version.upstream_id: change for version, change in zip(versions, changes, strict=True)}
    context = {"page": shown, "document": shown.document, "parts": parts, "q": q, "changes": by_id}
    return await visit.page("meetings/page.html", here="meetings", **context, **WORDS)


@router.get("/search")
async def search(
    visit: Visitor,
    q: Words = "",
    within: Annotated[str, Query(alias="in", max_length=190)] = "",
    after: str | None = None,
) -> Response:
    person, parts = visit.person, visit.parts
    municipality = await find_municipality(within, parts) if within else None
    results = await api.search(person, parts, q, within, _RESULT_COUNT, after)
    context = {"q": q, "municipality": municipality, "pages": results.pages, "next": results.next}
    return await visit.page(
        "meetings/search.html",
        here="meetings",
        has_words=bool(search_query(q)),
        after=after,
        **context,
        **WORDS,
    )
