"""The shapes of requests and responses."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import Field, StringConstraints

from holdfast.errors import NotThere
from holdfast.features.jobs.stream_shapes import SliceShape
from holdfast.model import JobState, StreamState
from holdfast.server.dependencies import Parts
from holdfast.server.shapes import Shape, Text
from holdfast_meetings.backfills import BackfillState, ExpectedBy
from holdfast_meetings.municipalities import Municipality
from holdfast_meetings.options import DocumentType
from holdfast_meetings.pipeline import Meetings
from holdfast_meetings.reads import MeetingsReads
from holdfast_meetings.streams import MeetingsStreams

Subdomain = Annotated[str, Path(min_length=1, max_length=190, examples=["alameda.ca"])]
Words = Annotated[str, Query(max_length=300)]
After = Annotated[str | None, Query(description="The `next` of the previous page.")]
PageSize = Annotated[int, Query(alias="pageSize", ge=1, le=200)]
SubdomainText = Annotated[str, StringConstraints(max_length=190, pattern=r"^[^\x00]*$")]


class BackfillShape(Shape):
    state: BackfillState
    stored: int | None = Field(description="Stored pages of all types.")
    expected: int | None = Field(description="Rows of the site, of all types.")
    expected_by: ExpectedBy | None = Field(
        description="SITE: counted by it. WEBHOOK: as it last reported. ESTIMATE: at least as many."
    )
    rejected: int = Field(description="Rows that are not valid pages.")
    duplicates: int = Field(description="Further rows for a page that is stored.")
    verified_at: datetime | None


class MunicipalityShape(Shape):
    subdomain: str
    name: str
    state: str | None
    country: str | None
    kind: str | None
    url: str
    zone: str
    pages: int | None = Field(description="As last reported by the webhook of the site.")
    last_updated: str | None = Field(description="As last reported by the webhook of the site.")
    latitude: float | None
    longitude: float | None
    updated_at: datetime
    backfill: BackfillShape


class MunicipalityList(Shape):
    municipalities: list[MunicipalityShape]
    next: str | None


class MunicipalityChange(Shape):
    """Fields that are left out stay as they are; empty ones are cleared."""

    name: Text | None = None
    state: Text | None = None
    country: Text | None = None
    kind: Text | None = None
    url: Text | None = None
    zone: Text | None = Field(default=None, examples=["America/Los_Angeles"])


class NewMunicipality(MunicipalityChange):
    subdomain: SubdomainText = Field(examples=["alameda.ca"])


class DocumentShape(Shape):
    id: int
    document_type: DocumentType
    meeting: str
    date: date
    pages: int
    vanished_pages: int


class DocumentList(Shape):
    documents: list[DocumentShape]
    next: str | None


class DocumentDetail(Shape):
    id: int
    subdomain: str
    municipality: str
    document_type: DocumentType
    meeting: str
    date: date


class PageShape(Shape):
    id: int
    number: int
    text: str
    characters: int = Field(description="Length of the whole text, which may be cut here.")
    image_url: str | None
    upstream_id: str
    updated_at: datetime
    vanished_at: datetime | None = Field(
        description="When it was found to be no longer on the site."
    )
    versions: int = Field(description="Number of earlier versions.")


class PageList(Shape):
    document: DocumentDetail
    pages: list[PageShape]
    next: str | None


class VersionShape(Shape):
    upstream_id: str
    state: str = Field(description="SUPERSEDED by a later version, or a DUPLICATE of the page.")
    text: str
    at: datetime


class PageDetail(Shape):
    document: DocumentDetail
    id: int
    number: int
    text: str
    image_url: str | None
    upstream_id: str
    updated_at: datetime
    vanished_at: datetime | None
    previous_id: int | None
    next_id: int | None
    history: list[VersionShape]


class PartShape(Shape):
    text: str
    found: bool = Field(description="Whether it matches the search.")


class FoundShape(Shape):
    page_id: int
    document_id: int
    subdomain: str
    municipality: str
    document_type: DocumentType
    meeting: str
    date: date
    number: int
    vanished_at: datetime | None
    snippet: list[PartShape]


class FoundList(Shape):
    pages: list[FoundShape]
    next: str | None


class StreamShape(Shape):
    id: int
    subdomain: str
    document_type: str = Field(description="Empty where the stored source is of no known type.")
    mode: str = Field(description="`full` or `incremental`; whatever is stored is shown.")
    job_id: int
    job_state: JobState
    owner_id: str
    state: StreamState
    generation: int
    api_pages: int
    rows: int
    expected: int | None
    actual: int | None
    full_completed_at: datetime | None
    verified_at: datetime | None
    force_full: bool
    rerun_requested: bool
    error: str | None
    cursor: Any
    updated_at: datetime | None


class StreamList(Shape):
    streams: list[StreamShape]
    next: str | None


class CountsShape(Shape):
    documents_created: int
    documents_updated: int
    documents_unchanged: int
    pages_created: int
    pages_updated: int
    pages_unchanged: int
    pages_rejected: int


class StreamDetail(Shape):
    stream: StreamShape
    counts: CountsShape = Field(description="What its job has done so far.")
    slices: list[SliceShape]


class DecisionShape(Shape):
    subdomain: str
    document_type: DocumentType
    action: str
    why: str


class Decisions(Shape):
    decisions: list[DecisionShape]


def pipeline_of(parts: Parts) -> Meetings:
    pipeline = parts.pipelines["meetings"]
    assert isinstance(pipeline, Meetings)
    return pipeline


def reads_of(parts: Parts) -> MeetingsReads:
    return MeetingsReads(parts.fetch)


def streams_of(parts: Parts) -> MeetingsStreams:
    return MeetingsStreams(parts.store.streams)


async def find_municipality(subdomain: str, parts: Parts) -> Municipality:
    municipality = await reads_of(parts).municipality(subdomain)
    if municipality is None:
        raise NotThere(f"there is no municipality {subdomain!r}", "See the list of municipalities.")
    return municipality
