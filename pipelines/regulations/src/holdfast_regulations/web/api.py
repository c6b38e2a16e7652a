"""Routes for programs: sources, runs, documents and their evidence, search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from holdfast.errors import FilesGone, GateWait, NotAllowed, NotThere, UnfitState
from holdfast.features.jobs.scoped_job import ScopedJob
from holdfast.model import Job, Json
from holdfast.server.cursors import Cursors
from holdfast.server.dependencies import Parts
from holdfast.server.idempotency import IdempotentRoute, RequestKey, request_key
from holdfast.server.identity import Operator, PartsOf, Person, Someone
from holdfast.server.shapes import Id
from holdfast_regulations import bodies
from holdfast_regulations.content import Staleness
from holdfast_regulations.options import PIPELINE
from holdfast_regulations.reads import DocumentFilter, headers_of
from holdfast_regulations.runs import chosen_sources
from holdfast_regulations.sources import Source
from holdfast_regulations.web.shapes import (
    After,
    CaptureShape,
    DocumentDetail,
    DocumentList,
    FoundList,
    FoundShape,
    NewRun,
    PageSize,
    PartShape,
    RunShape,
    RunsMade,
    RunSource,
    Slug,
    SourceList,
    SourceShape,
    StreamShape,
    Words,
    document_shape,
    find_document,
    pipeline_of,
    reads_of,
)


class _RunRoute(IdempotentRoute):
    """A route of runs; only a run creates something: jobs."""

    async def describe(self, request: Request, person: Person, made: int) -> str:
        return RunsMade(job_ids=[made]).model_dump_json(by_alias=True)


router = APIRouter(prefix="/api/regulations", tags=["regulations"], route_class=_RunRoute)

_MOST_CAPTURES = 200
_NONE = {"documents": 0, "fresh": 0, "aging": 0, "stale": 0, "unavailable": 0}


@router.get("/sources", summary="List the sources and their state")
async def sources(person: Someone, parts: PartsOf) -> SourceList:
    pipeline = pipeline_of(parts)
    known = pipeline.known_sources
    health = await reads_of(parts).health()
    streams: dict[str, list[StreamShape]] = {}
    for row in await parts.store.streams.of_sources(PIPELINE, list(known)):
        streams.setdefault(row.source, []).append(_stream(row))
    shapes = [
        _source(source, health.get(slug, {}), streams.get(slug, []))
        for slug, source in known.items()
    ]
    enabled = pipeline.enabled_by is None or await parts.flags.is_on(pipeline.enabled_by)
    return SourceList(enabled=enabled, sources=shapes)


def _source(source: Source, health: Json, streams: Sequence[StreamShape]) -> SourceShape:
    counts = {name: health.get(name, none) for name, none in _NONE.items()}
    return SourceShape(
        slug=source.slug,
        name=source.name,
        note=source.note,
        hosts=list(source.hosts),
        mode=source.mode,
        modes=[str(mode) for mode in source.modes],
        verified=source.verified,
        min_delay_seconds=source.gate.min_delay_seconds,
        max_delay_seconds=source.gate.max_delay_seconds,
        last_verified_at=health.get("last_verified_at"),
        changed_at=health.get("changed_at"),
        streams=list(streams),
        **counts,
    )


def _stream(row: Any) -> StreamShape:
    return StreamShape(
        mode=row.mode,
        job_id=row.job_id,
        job_state=row.job_state,
        state=row.state,
        urls=row.records_count,
        error=row.error,
        updated_at=row.updated_at,
    )


@router.post("/runs", status_code=201, summary="Start a run")
async def start(request: Request, body: NewRun, person: Operator, parts: PartsOf) -> RunsMade:
    """Responds with 409 while the pipeline is off, and while a source is being read."""
    return await start_run(body, person, parts, request_key(request))


async def start_run(
    body: NewRun, person: Person, parts: Parts, key: RequestKey | None = None
) -> RunsMade:
    given = body.model_dump(mode="json", exclude_defaults=True)
    pipeline = pipeline_of(parts)
    chosen = chosen_sources(given.get("sources"), pipeline.known_sources)
    await _check_owner([source.slug for source in chosen], person, parts)
    request, quota = given | {"run_by": person.name}, parts.console.quotas.of_jobs
    ordered = await parts.control(person.name).request(pipeline, request, key=key, quota=quota)
    return RunsMade(job_ids=ordered.job_ids)


async def _check_owner(slugs: Sequence[str], person: Person, parts: Parts) -> None:
    """Refuses streams of others.

    A run takes over the streams of its sources, so they must be the person's own."""
    if person.scope is None:
        return
    rows = await parts.store.streams.of_sources(PIPELINE, list(slugs))
    others = [row.source for row in rows if row.owner_id != person.scope]
    if others:
        raise NotAllowed(f"the streams of {others[0]} belong to another owner", "Ask an admin.")


@router.get("/runs/{jobId}", summary="Show a run with its caps and counts")
async def run(job: ScopedJob, person: Someone, parts: PartsOf) -> RunShape:
    if job.pipeline != PIPELINE:
        raise NotThere(f"job {job.id} is not a run of {PIPELINE}", "GET /api/jobs lists jobs.")
    return await run_shape(job, parts)


async def run_shape(job: Job, parts: Parts) -> RunShape:
    reads = reads_of(parts)
    counters = await parts.store.reads.counters(job.id)
    counts, reasons = await reads.run_counts(job.id), await reads.run_reasons(job.id)
    streams = await parts.store.streams.of_job(job.id)
    return RunShape(
        job_id=job.id,
        name=job.name,
        state=job.state,
        mode=job.mode,
        lane=job.lane,
        max_urls=job.max_items,
        options=dict(job.options),
        created_at=job.created_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
        discovered=counters.accepted + counters.known,
        queued=counters.accepted,
        skipped=counters.known,
        errors=counters.error + counters.not_found,
        error=job.error,
        sources=[
            RunSource(
                source=stream.source,
                state=stream.state,
                cap=stream.max_items,
                new=stream.items_count,
                discovered=stream.records_count,
                left_out=_group(counts.get(stream.source, {}), sitemaps=False),
                sitemaps=_group(counts.get(stream.source, {}), sitemaps=True),
                captures=reasons.get(stream.source, {}),
                error=stream.error,
                waiting_for=stream.waiting_for,
            )
            for stream in streams
        ],
    )


def _group(counts: Mapping[str, int], *, sitemaps: bool) -> dict[str, int]:
    prefix = "sitemaps"
    return {
        reason.removeprefix("sitemaps.").removeprefix("sitemaps_left_out."): count
        for reason, count in counts.items()
        if reason.startswith(prefix) is sitemaps
    }


@router.get("/documents", summary="List documents")
async def documents(
    person: Someone,
    parts: PartsOf,
    source: Slug = None,
    staleness: Staleness | None = None,
    page_size: PageSize = 100,
    after: After = None,
) -> DocumentList:
    """The newest come first."""
    bound = {"source": source, "staleness": staleness}
    cursors = Cursors(parts.secret, "regulations", person.name, bound)
    wanted = DocumentFilter(source or None, staleness)
    rows = await reads_of(parts).documents(wanted, cursors.read(after), page_size + 1)
    shown = [document_shape(row) for row in rows[:page_size]]
    more = cursors.write(shown[-1].id) if len(rows) > page_size else None
    return DocumentList(documents=shown, next=more)


@router.get("/documents/{document_id}", summary="Show a document with its captures")
async def document(document_id: Id, person: Someone, parts: PartsOf) -> DocumentDetail:
    row = await find_document(document_id, parts)
    reads = reads_of(parts)
    captures = [_capture(capture) for capture in await reads.captures(row["key"], _MOST_CAPTURES)]
    text = await reads.text(row["text_sha256"]) if row["text_sha256"] else ""
    return DocumentDetail(
        document=document_shape(row),
        unavailable_reason=row["unavailable_reason"],
        text=text,
        captures=captures,
    )


def _capture(row: Json) -> CaptureShape:
    return CaptureShape(**row | {"headers": headers_of(row["headers"])})


@router.get(
    "/evidence/{evidence_id}/body",
    summary="Download the body of evidence",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}}},
)
async def body(evidence_id: Id, person: Someone, parts: PartsOf) -> Response:
    """Returns the decoded bytes as they were fetched, checked against their hash.

    They are never shown as a page of this site."""
    row = await reads_of(parts).evidence(evidence_id)
    if row is None:
        raise NotThere(f"there is no evidence {evidence_id}", "See the captures of a document.")
    content = await _content(row, parts)
    headers = {
        "Content-Disposition": f'attachment; filename="{row["sha256"][:16]}"',
        "ETag": f'"{row["sha256"]}"',
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "private, max-age=31536000, immutable",
    }
    return Response(content, media_type="application/octet-stream", headers=headers)


async def _content(evidence: Json, parts: Parts) -> bytes:
    [stored] = await parts.fetch("regulations_body", {"sha256": evidence["sha256"]})
    try:
        return await bodies.load(stored, parts.files_of(PIPELINE))
    except bodies.DamagedBody as damaged:
        raise UnfitState(
            f"the body of evidence {evidence['id']} is damaged: {damaged}",
            "Restore it from a backup. `holdfast regulations verify` names all that are damaged.",
        ) from damaged
    except GateWait as gone:
        raise FilesGone(gone.reason) from gone


@router.get("/search", summary="Search the documents")
async def search(
    person: Someone,
    parts: PartsOf,
    q: Words,
    source: Slug = None,
    page_size: PageSize = 50,
    after: After = None,
) -> FoundList:
    """Returns documents that contain all the words, newest first; words in quotes are a phrase."""
    cursors = Cursors(parts.secret, "regulations", person.name, {"q": q, "source": source})
    position = cursors.read(after)
    rows = await reads_of(parts).search(q, source or None, position, page_size + 1)
    shown = [_found(row) for row in rows[:page_size]]
    more = cursors.write(shown[-1].id) if len(rows) > page_size else None
    return FoundList(documents=shown, next=more)


def _found(row: Json) -> FoundShape:
    names = ("id", "source", "url", "title", "published")
    snippet = [PartShape(text=text, found=found) for text, found in row["snippet"]]
    return FoundShape(**{name: row[name] for name in names}, snippet=snippet)
