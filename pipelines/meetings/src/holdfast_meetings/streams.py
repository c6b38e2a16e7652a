"""The streams of meetings, by municipality and type of document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from holdfast.errors import UserError
from holdfast.model import Json
from holdfast_meetings.options import DocumentType, Mode, source_of, split_source
from holdfast_meetings.reads import MeetingsReads

_PIPELINE = "meetings"
_SHOWN = ("subdomain", "name", "state", "country", "kind", "url", "zone", "pages", "last_updated")
#: The name of a column in core -> its name here.
_NAMES = {
    "pages_count": "api_pages",
    "records_count": "rows",
    "expected_count": "expected",
    "actual_count": "actual",
}


class StreamReads(Protocol):
    """What core offers for reading streams."""

    async def of_pipeline(
        self,
        pipeline: str,
        after: int = 0,
        limit: int = 100,
        *,
        owner: str | None = None,
        mode: str | None = None,
        source_ending: str = "",
        job_state: str | None = None,
    ) -> Sequence[Any]: ...

    async def of_sources(self, pipeline: str, sources: Sequence[str]) -> Sequence[Any]: ...


class MeetingsStreams:
    def __init__(self, streams: StreamReads) -> None:
        self._streams = streams

    async def index(
        self,
        after: int = 0,
        limit: int = 100,
        *,
        owner: str | None = None,
        mode: Mode | None = None,
        document_type: DocumentType | None = None,
        job_state: str | None = None,
    ) -> list[Json]:
        """Lists streams in order of id; for the jobs of one owner, or of all."""
        streams = await self._streams.of_pipeline(
            _PIPELINE,
            after,
            limit,
            owner=owner,
            mode=mode,
            source_ending=f":{document_type}" if document_type else "",
            job_state=job_state,
        )
        return [_stream(stream) for stream in streams]

    async def of_municipalities(self, subdomains: Sequence[str]) -> dict[str, list[Json]]:
        """Returns the streams by subdomain."""
        sources = [source_of(name, kind) for name in subdomains for kind in DocumentType]
        by_subdomain: dict[str, list[Json]] = {name: [] for name in subdomains}
        for row in await self._streams.of_sources(_PIPELINE, sources):
            stream = _stream(row)
            by_subdomain[stream["subdomain"]].append(stream)
        return by_subdomain


async def overview(reads: MeetingsReads, streams: MeetingsStreams) -> list[Json]:
    """Lists every municipality with its streams."""
    municipalities = await reads.all_municipalities()
    by_subdomain = await streams.of_municipalities(
        [municipality.subdomain for municipality in municipalities]
    )
    return [
        {name: getattr(municipality, name) for name in _SHOWN}
        | {"streams": by_subdomain[municipality.subdomain]}
        for municipality in municipalities
    ]


def _stream(row: Any) -> Json:
    stream = {_NAMES.get(name, name): value for name, value in row._asdict().items()}
    return {**stream, **_collection_of(stream["source"])}


def _collection_of(source: str) -> Json:
    """Returns the collection of any stored source: an unknown one counts as a name without a
    type."""
    try:
        subdomain, document_type = split_source(source)
    except UserError:
        return {"subdomain": source, "document_type": ""}
    return {"subdomain": subdomain, "document_type": document_type}
