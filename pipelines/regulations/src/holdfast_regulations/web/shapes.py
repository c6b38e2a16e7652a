"""The shapes of requests and responses."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from holdfast.errors import NotThere
from holdfast.model import JobState, Json
from holdfast.server.dependencies import Parts
from holdfast.server.shapes import Shape, Text
from holdfast_regulations.content import Staleness
from holdfast_regulations.options import PIPELINE
from holdfast_regulations.pipeline import Regulations
from holdfast_regulations.reads import RegulationsReads

Words = Annotated[str, Query(max_length=300)]
Slug = Annotated[str | None, Query(max_length=40)]
After = Annotated[str | None, Query(description="The `next` of the previous page.")]
PageSize = Annotated[int, Query(alias="pageSize", ge=1, le=200)]


class StreamShape(Shape):
    mode: str
    job_id: int
    job_state: JobState
    state: str
    urls: int = Field(description="URLs that its last run discovered.")
    error: str | None
    updated_at: datetime | None


class SourceShape(Shape):
    slug: str
    name: str
    note: str
    hosts: list[str]
    mode: str
    modes: list[str]
    verified: date = Field(description="When its entry was last compared with the site.")
    min_delay_seconds: float
    max_delay_seconds: float
    documents: int
    fresh: int
    aging: int
    stale: int
    unavailable: int
    last_verified_at: datetime | None
    changed_at: datetime | None
    streams: list[StreamShape]


class SourceList(Shape):
    enabled: bool = Field(description="Whether runs can be started.")
    sources: list[SourceShape]


class NewRun(Shape):
    """A run to start; what is not given is as the source or the settings say."""

    sources: list[Text] = Field(default=[], max_length=100, description="Slugs; empty: all.")
    mode: Text | None = None
    lane: Text | None = None
    date_from: date | None = None
    date_to: date | None = None
    max_urls: int | None = Field(None, ge=1, le=10_000_000)
    max_urls_per_source: int | None = Field(None, ge=1, le=10_000_000)
    concurrency: int | None = Field(None, ge=1, le=64)
    delay_ms: int | None = Field(None, ge=1, le=3_600_000)
    recheck_days: int | None = Field(None, ge=1, le=36_500)
    restart: bool = False


class RunsMade(Shape):
    job_ids: list[int]


class RunSource(Shape):
    source: str
    state: str
    cap: int | None
    new: int = Field(description="New URLs, which became items.")
    discovered: int
    left_out: dict[str, int] = Field(
        description="URLs left out, by reason. Where a cap cut a page, all of that page counts."
    )
    sitemaps: dict[str, int] = Field(description="Sitemaps read, known, unchanged and left out.")
    captures: dict[str, int] = Field(description="What captures added, by reason.")
    error: str | None
    waiting_for: str | None


class RunShape(Shape):
    job_id: int
    name: str
    state: JobState
    mode: str | None
    lane: str
    max_urls: int | None
    options: dict[str, Any]
    created_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    discovered: int
    queued: int
    skipped: int
    errors: int
    error: str | None
    sources: list[RunSource]


class DocumentShape(Shape):
    id: int
    key: str
    source: str
    url: str
    title: str
    published: str | None
    act: str | None = Field(description="Path of its European Legislation Identifier.")
    content_class: str | None
    sha256: str | None
    captures: int
    versions: int
    first_seen_at: datetime
    changed_at: datetime | None
    last_verified_at: datetime | None
    unavailable_since: datetime | None
    staleness: Staleness


class DocumentList(Shape):
    documents: list[DocumentShape]
    next: str | None


class CaptureShape(Shape):
    id: int
    evidence_id: int
    url: str
    final_url: str
    sha256: str
    text_sha256: str | None
    size: int
    captured_at: datetime
    status: int
    reason: str
    found_by: str
    job_id: int
    seq: int
    headers: list[tuple[str, str]]


class DocumentDetail(Shape):
    document: DocumentShape
    unavailable_reason: str | None
    text: str
    captures: list[CaptureShape] = Field(description="The latest first, up to 200.")


class PartShape(Shape):
    text: str
    found: bool = Field(description="Whether it matches the search.")


class FoundShape(Shape):
    id: int
    source: str
    url: str
    title: str
    published: str | None
    snippet: list[PartShape]


class FoundList(Shape):
    documents: list[FoundShape]
    next: str | None


def pipeline_of(parts: Parts) -> Regulations:
    pipeline = parts.pipelines[PIPELINE]
    assert isinstance(pipeline, Regulations)
    return pipeline


def reads_of(parts: Parts) -> RegulationsReads:
    return RegulationsReads(parts.fetch, pipeline_of(parts).settings.ages, parts.clock)


async def find_document(document_id: int, parts: Parts) -> Json:
    document = await reads_of(parts).document(document_id)
    if document is None:
        raise NotThere(f"there is no document {document_id}", "See the list of documents.")
    return document


def document_shape(row: Json) -> DocumentShape:
    names = {"act": "eli", "captures": "captures_count", "versions": "versions_count"}
    fields = {name: row[names.get(name, name)] for name in DocumentShape.model_fields}
    return DocumentShape(**fields)
