"""Pages: the state of the sources, a run, documents with their captures and changes, search."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from holdfast.errors import UserError
from holdfast.features.jobs.pages_job import VisitedJob
from holdfast.server.context import Visitor
from holdfast.server.forms import OperatorPost, fields, shaped, values_of, whole_number
from holdfast.server.shapes import Id
from holdfast.server.text_diff import compare_versions
from holdfast.text_search import search_query
from holdfast_regulations.content import Staleness
from holdfast_regulations.options import MODES
from holdfast_regulations.web import api
from holdfast_regulations.web.shapes import NewRun, Words, find_document, reads_of

router = APIRouter(prefix="/regulations")

_PAGE_SIZE = 50
_MOST_VERSIONS = 10
Choice = Annotated[str, Query(max_length=40)]


@router.get("")
async def index(visit: Visitor) -> Response:
    listed = await api.sources(visit.person, visit.parts)
    gates = {gate["name"]: gate for gate in await visit.parts.store.gates.all()}
    return await visit.page(
        "regulations/sources.html",
        here="regulations",
        sources=listed.sources,
        enabled=listed.enabled,
        gates=gates,
        modes=MODES,
    )


@router.post("/runs")
async def start(visit: OperatorPost) -> Response:
    form = await fields(visit.request)
    given: dict[str, Any] = {
        "sources": await values_of(visit.request, "sources"),
        "mode": form.get("mode") or None,
        "date_from": form.get("date_from") or None,
        "date_to": form.get("date_to") or None,
        "max_urls": whole_number(form.get("max_urls")) if form.get("max_urls") else None,
    }
    if not given["sources"]:
        raise UserError("no source is chosen", "Choose at least one.")
    new = shaped(NewRun, {name: value for name, value in given.items() if value})
    made = await api.start_run(new, visit.person, visit.parts)
    if not made.job_ids:
        return visit.go("/regulations", "Nothing to do: these sources are being read.")
    return visit.go(f"/regulations/runs/{made.job_ids[-1]}", "The run is started.")


@router.get("/runs/{job_id}")
async def run(visited: VisitedJob) -> Response:
    visit = visited.visit
    shape = await api.run(visited.job, visit.person, visit.parts)
    return await visit.page("regulations/run.html", here="regulations", run=shape)


@router.get("/documents")
async def documents(
    visit: Visitor, source: Choice = "", staleness: Choice = "", after: str | None = None
) -> Response:
    state = Staleness(staleness) if staleness in set(Staleness) else None
    page = await api.documents(visit.person, visit.parts, source or None, state, _PAGE_SIZE, after)
    listed = await api.sources(visit.person, visit.parts)
    return await visit.page(
        "regulations/documents.html",
        here="regulations",
        documents=page.documents,
        next=page.next,
        sources=[shape.slug for shape in listed.sources],
        wanted={"source": source, "staleness": state or ""},
        states=list(Staleness),
    )


@router.get("/documents/{document_id}")
async def document(document_id: Id, visit: Visitor) -> Response:
    detail = await api.document(document_id, visit.person, visit.parts)
    row = await find_document(document_id, visit.parts)
    versions = await reads_of(visit.parts).versions(row["key"], _MOST_VERSIONS)
    changes = await compare_versions([version["text"] for version in versions])
    shown = [
        {"version": version, "change": change}
        for version, change in zip(versions[1:], changes, strict=True)
    ]
    return await visit.page(
        "regulations/document.html",
        here="regulations",
        document=detail.document,
        row=row,
        text=detail.text,
        captures=detail.captures,
        reason=detail.unavailable_reason,
        versions=shown,
    )


@router.get("/search")
async def search(
    visit: Visitor, q: Words = "", source: Choice = "", after: str | None = None
) -> Response:
    found = await api.search(visit.person, visit.parts, q, source or None, _PAGE_SIZE, after)
    return await visit.page(
        "regulations/search.html",
        here="regulations",
        q=q,
        source=source,
        documents=found.documents,
        next=found.next,
        has_words=bool(search_query(q)),
    )
