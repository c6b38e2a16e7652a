"""Reads for pages, routes and commands: municipalities, documents, pages and the search."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from typing import Any

import orjson

from holdfast.model import Json
from holdfast.pipeline import Fetch
from holdfast.text_search import Part, highlighted_parts, search_query, snippet_parts
from holdfast_meetings.backfills import OtherRows
from holdfast_meetings.municipalities import Municipality
from holdfast_meetings.options import DocumentType

EXPORT_COLUMNS = ("document_type", "date", "meeting", "page", "text", "page_image", "id",
                  "entities_json", "votes_json", "updated_at")  # fmt: skip
_PAGE = 500
_FIRST_DAY, _LAST_DAY, _LAST_ID = "", "9999-99-99", 2**62
_EXCERPT = 4000  # characters of a page that its document shows
_VERSIONS = 20


class MeetingsReads:
    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    async def municipality(self, subdomain: str) -> Municipality | None:
        rows = await self._fetch("meetings_municipality", {"subdomain": subdomain})
        return Municipality(*rows[0]) if rows else None

    async def municipalities(
        self, after: str = "", limit: int = 100, *, words: str = "", state: str | None = None
    ) -> list[Municipality]:
        """Lists municipalities by subdomain; `words` is part of the name or of the subdomain."""
        params = {"after": after, "limit": limit, "words": _containing(words), "state": state}
        return [Municipality(*row) for row in await self._fetch("meetings_municipalities", params)]

    async def states(self) -> list[str]:
        return [row[0] for row in await self._fetch("meetings_municipality_states", {})]

    async def all_municipalities(self) -> list[Municipality]:
        municipalities: list[Municipality] = []
        last = ""
        while page := await self.municipalities(last, _PAGE):
            municipalities += page
            last = page[-1].subdomain
        return municipalities

    async def other_rows(self, ids: Sequence[int]) -> dict[int, OtherRows]:
        """Returns other rows by id of the municipality; left out if there are none."""
        counts: dict[int, dict[str, int]] = {}
        for row in await self._fetch("meetings_other_rows", {"ids": list(ids)}):
            counts.setdefault(row[0], {})[row[1]] = row[2]
        return {
            municipality_id: OtherRows(kinds.get("REJECTED", 0), kinds.get("DUPLICATE", 0))
            for municipality_id, kinds in counts.items()
        }

    async def counts(self, job_id: int) -> Json:
        names = ("documents_created", "documents_updated", "documents_unchanged",
                 "pages_created", "pages_updated", "pages_unchanged",
                 "pages_rejected")  # fmt: skip
        return _named(names, (await self._fetch("meetings_counts", {"job_id": job_id}))[0])

    async def bodies(self, municipality_id: int) -> list[tuple[str, int]]:
        rows = await self._fetch("meetings_bodies", {"municipality_id": municipality_id})
        return [(row[0], row[1]) for row in rows]

    async def documents(
        self,
        municipality_id: int,
        *,
        meeting: str | None = None,
        document_type: DocumentType | None = None,
        since: str = _FIRST_DAY,
        until: str = _LAST_DAY,
        before: tuple[str, int] = (_LAST_DAY, _LAST_ID),
        limit: int = 100,
    ) -> list[Json]:
        """Lists documents, newest first, from `since` to `until`; `before` is the date and id of
        the last document of the previous page."""
        params = {
            "municipality_id": municipality_id,
            "meeting": meeting,
            "document_type": document_type,
            "since": since,
            "until": until,
            "date": before[0],
            "document_id": before[1],
            "limit": limit,
        }
        names = ("id", "document_type", "meeting", "date", "pages", "vanished_pages")
        return [_named(names, row) for row in await self._fetch("meetings_documents_of", params)]

    async def document(self, document_id: int) -> Json | None:
        names = ("id", "subdomain", "municipality", "document_type", "meeting", "date")
        rows = await self._fetch("meetings_document", {"document_id": document_id})
        return _named(names, rows[0]) if rows else None

    async def pages(self, document_id: int, after: int = -1, limit: int = 50) -> list[Json]:
        """Lists a document's pages, including vanished ones.

        A long text is cut; `characters` is its full length."""
        names = ("id", "number", "text", "page_image", "upstream_id", "updated_at", "vanished_at",
                 "characters", "versions")  # fmt: skip
        params = {"document_id": document_id, "after": after, "limit": limit}
        params["characters"] = _EXCERPT
        rows = await self._fetch("meetings_pages_of_document", params)
        return [_named(names, row) for row in rows]

    async def page(self, page_id: int) -> Json | None:
        names = ("id", "number", "text", "page_image", "upstream_id", "updated_at", "vanished_at",
                 "document_id", "previous_id", "next_id")  # fmt: skip
        rows = await self._fetch("meetings_page", {"page_id": page_id})
        return _named(names, rows[0]) if rows else None

    async def versions(self, page_id: int) -> list[Json]:
        """Lists earlier contents of the page, the latest first."""
        names = ("upstream_id", "state", "text", "page_image", "at")
        params = {"page_id": page_id, "limit": _VERSIONS}
        rows = await self._fetch("meetings_page_versions", params)
        return [_named(names, row) for row in rows]

    async def search(
        self,
        words: str,
        subdomain: str | None = None,
        *,
        before: tuple[str, int] = (_LAST_DAY, _LAST_ID),
        limit: int = 50,
    ) -> list[Json]:
        """Finds pages that contain all the words, newest first; words in quotes are a phrase.

        `before` is the date and page id of the last result of the previous page."""
        query = search_query(words)
        if not query:
            return []
        names = ("page_id", "document_id", "subdomain", "municipality", "document_type",
                 "meeting", "date", "number", "vanished_at", "snippet")  # fmt: skip
        params = {"words": query, "subdomain": subdomain, "limit": limit}
        params |= {"date": before[0], "page_id": before[1]}
        pages = [_named(names, row) for row in await self._fetch("meetings_search", params)]
        return [page | {"snippet": snippet_parts(page["snippet"])} for page in pages]

    async def highlighted(self, page: Json, words: str) -> list[Part]:
        """Returns the text of the page, with the words marked."""
        text, query = page["text"], search_query(words)
        params = {"page_id": page["id"], "words": query}
        rows = await self._fetch("meetings_highlight", params) if query else []
        return highlighted_parts(text, rows[0][0]) if rows else [(text, False)]

    async def every_page(self, municipality_id: int) -> AsyncGenerator[list[Json]]:
        """Yields all pages that have not vanished, in order of date, document and number."""
        position: Json = {"date": "", "document_id": 0, "number": -1}
        while True:
            params = {"municipality_id": municipality_id, "limit": _PAGE, **position}
            rows = await self._fetch("meetings_pages_of", params)
            if not rows:
                return
            yield [_exported(row) for row in rows]
            position = {"date": rows[-1][1], "document_id": rows[-1][9], "number": rows[-1][3]}


def _containing(words: str) -> str:
    escaped = re.sub(r"([\\%_])", r"\\\1", words.lower())
    return f"%{escaped}%"


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
    """Returns an instant as text, whichever type the database returns."""
    if value is None or isinstance(value, str):
        return value
    assert isinstance(value, datetime)
    return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
