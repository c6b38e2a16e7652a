"""What people read: municipalities, documents, pages, streams, and a search over all words."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson

from holdfast.model import Json
from holdfast.pipelines.meetings.municipalities import Municipality
from holdfast.pipelines.meetings.options import DocumentType, split_source

#: Runs a named query in a snapshot: how a pipeline reads for its pages.
Fetch = Callable[[str, Mapping[str, Any]], Awaitable[Sequence[Sequence[Any]]]]

EXPORT_COLUMNS = ("document_type", "date", "meeting", "page", "text", "page_image", "id",
                  "entities_json", "votes_json", "updated_at")  # fmt: skip
_PAGE = 500
_LAST_DAY, _LAST_ID = "9999-99-99", 2**62
_WORDS = re.compile(r'"[^"]*"|[^\s"]+')


class MeetingsReads:
    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    async def municipality(self, subdomain: str) -> Municipality | None:
        rows = await self._fetch("municipality", {"subdomain": subdomain})
        return Municipality(*rows[0]) if rows else None

    async def municipalities(self, after: str = "", limit: int = 100) -> list[Municipality]:
        rows = await self._fetch("municipalities", {"after": after, "limit": limit})
        return [Municipality(*row) for row in rows]

    async def overview(self) -> list[Json]:
        """Every municipality with its streams."""
        by_subdomain: dict[str, list[Json]] = {}
        for stream in await self._all_streams():
            by_subdomain.setdefault(stream["subdomain"], []).append(stream)
        found: list[Json] = []
        while page := await self.municipalities(found[-1]["subdomain"] if found else "", _PAGE):
            found += [
                {
                    "subdomain": one.subdomain,
                    "name": one.name,
                    "url": one.url,
                    "zone": one.zone,
                    "pages": one.pages,
                    "last_updated": one.last_updated,
                    "streams": by_subdomain.get(one.subdomain, []),
                }
                for one in page
            ]
        return found

    async def streams(
        self,
        after: int = 0,
        limit: int = 100,
        *,
        mode: str | None = None,
        job_state: str | None = None,
    ) -> list[Json]:
        """How each stream stands, for the Streams page. Filter by type in what comes."""
        params = {"after": after, "limit": limit, "mode": mode, "job_state": job_state}
        return [_stream(row) for row in await self._fetch("meeting_streams", params)]

    async def slices(self, stream_id: int, limit: int = 50) -> list[Json]:
        names = ("id", "generation", "job_id", "worker", "started_at", "ended_at", "pages",
                 "ended", "error")  # fmt: skip
        rows = await self._fetch("meeting_slices", {"stream_id": stream_id, "limit": limit})
        return [_named(names, row) for row in rows]

    async def counts(self, job_id: int) -> Json:
        names = ("documents_created", "pages_created", "pages_updated", "pages_unchanged",
                 "pages_rejected")  # fmt: skip
        return _named(names, (await self._fetch("meeting_counts", {"job_id": job_id}))[0])

    async def bodies(self, municipality_id: int) -> list[tuple[str, int]]:
        rows = await self._fetch("meeting_bodies", {"municipality_id": municipality_id})
        return [(row[0], row[1]) for row in rows]

    async def documents(
        self,
        municipality_id: int,
        *,
        meeting: str | None = None,
        document_type: DocumentType | None = None,
        before: tuple[str, int] = (_LAST_DAY, _LAST_ID),
        limit: int = 100,
    ) -> list[Json]:
        """Newest first; `before` is the date and id of the last one seen."""
        params = {
            "municipality_id": municipality_id,
            "meeting": meeting,
            "document_type": None if document_type is None else document_type.value,
            "date": before[0],
            "document_id": before[1],
            "limit": limit,
        }
        names = ("id", "document_type", "meeting", "date", "pages")
        return [_named(names, row) for row in await self._fetch("meeting_documents_of", params)]

    async def document(self, document_id: int) -> Json | None:
        names = ("id", "subdomain", "municipality", "document_type", "meeting", "date")
        rows = await self._fetch("meeting_document", {"document_id": document_id})
        return _named(names, rows[0]) if rows else None

    async def pages(self, document_id: int, after: int = -1, limit: int = 50) -> list[Json]:
        names = ("id", "number", "text", "page_image", "upstream_id", "updated_at", "vanished_at")
        params = {"document_id": document_id, "after": after, "limit": limit}
        rows = await self._fetch("meeting_pages_of_document", params)
        return [_named(names, row) for row in rows]

    async def versions(self, page_id: int) -> list[Json]:
        names = ("upstream_id", "state", "text", "page_image", "at")
        rows = await self._fetch("meeting_page_versions", {"page_id": page_id})
        return [_named(names, row) for row in rows]

    async def search(self, words: str, subdomain: str | None = None, limit: int = 50) -> list[Json]:
        """Pages that have all the words, best first; words in quotes stand together."""
        wanted = query_of(words)
        if not wanted:
            return []
        names = ("page_id", "document_id", "subdomain", "document_type", "meeting", "date",
                 "number", "snippet")  # fmt: skip
        params = {"words": wanted, "subdomain": subdomain, "limit": limit}
        return [_named(names, row) for row in await self._fetch("search_meetings", params)]

    async def every_page(self, municipality_id: int) -> AsyncGenerator[list[Json]]:
        """All pages that are shown, in order of date, document and number."""
        position: Json = {"date": "", "document_id": 0, "number": -1}
        while True:
            params = {"municipality_id": municipality_id, "limit": _PAGE, **position}
            rows = await self._fetch("meeting_pages_of", params)
            if not rows:
                return
            yield [_exported(row) for row in rows]
            position = {"date": rows[-1][1], "document_id": rows[-1][9], "number": rows[-1][3]}

    async def _all_streams(self) -> list[Json]:
        found: list[Json] = []
        while page := await self.streams(found[-1]["id"] if found else 0, _PAGE):
            found += page
        return found


def query_of(words: str) -> str:
    """The words, each in quotes, as both databases' searches take them."""
    parts = (part.replace('"', "").replace("\0", "").strip() for part in _WORDS.findall(words))
    return " ".join(f'"{part}"' for part in parts if any(map(str.isalnum, part)))


def _stream(row: Sequence[Any]) -> Json:
    names = ("id", "source", "mode", "state", "generation", "job_id", "job_state", "api_pages",
             "rows", "expected", "actual", "full_completed_at", "verified_at", "force_full",
             "rerun_requested", "error", "cursor", "updated_at")  # fmt: skip
    stream = _named(names, row)
    subdomain, document_type = split_source(stream["source"])
    stream |= {"subdomain": subdomain, "document_type": document_type}
    stream["force_full"] = bool(stream["force_full"])
    stream["rerun_requested"] = bool(stream["rerun_requested"])
    return stream


def _exported(row: Sequence[Any]) -> Json:
    extra = orjson.loads(row[7]) if row[7] else {}
    values = (*row[:7], extra.get("entities_json"), extra.get("votes_json"), _instant(row[8]))
    return dict(zip(EXPORT_COLUMNS, values, strict=True))


def _named(names: Sequence[str], row: Sequence[Any]) -> Json:
    return {
        name: _instant(value) if name.endswith("_at") or name == "at" else value
        for name, value in zip(names, row, strict=True)
    }


def _instant(value: Any) -> str | None:
    """As text, whatever the database gives."""
    if value is None or isinstance(value, str):
        return value
    assert isinstance(value, datetime)
    return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
