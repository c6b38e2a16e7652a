"""Yields for `discover`, for one source of a run, the pages of its listing, or of the documents
that are due again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import orjson

from holdfast.clock import Clock
from holdfast.errors import DiscoveryError
from holdfast.model import Json, Lane, NothingYet, Page, Record
from holdfast.pipeline import Context
from holdfast_regulations.dates import DateRange, zagreb_day
from holdfast_regulations.discovery import Discovery, SitemapMark
from holdfast_regulations.options import RECHECK
from holdfast_regulations.sitemap.problems import Entry
from holdfast_regulations.sources import Mode, Source

_TURN_SECONDS = 2.0
_RESTED = timedelta(minutes=10)  # entries of a listing may have moved to its next page in this time
_LONGEST_WAITS = 4
_DUE_AT_ONCE = 500
_KNOWN_PAGES = 2  # after this many known pages, a daily pass has seen what is new in a listing
_COUNTED = ("refused", "dates", "sitemaps", "sitemaps_left_out")
_ACT = "act:"


@dataclass(slots=True)
class _Listing:
    """What a walk knows about a paginated listing besides its place in it."""

    again: bool = False  # whether the page before its place is read again
    known_pages: int = 0  # known pages in a row

    def as_json(self, read_at: datetime) -> Json:
        return {
            "read_at": read_at.isoformat(),
            "again": self.again,
            "known_pages": self.known_pages,
        }


@dataclass(frozen=True, slots=True)
class Walk:
    source: Source
    definition: str
    query: str
    mode: str
    wanted: DateRange
    concurrency: int
    recheck_days: int
    clock: Clock

    async def pages(self, cursor: Any, ctx: Context) -> AsyncIterator[Page | NothingYet]:
        """Yields pages.

        Cursors name the query in which they are a position: a run continues where another stopped
        only if it asks the same."""
        if await self._must_wait(ctx):
            yield NothingYet(
                _TURN_SECONDS, f"its turn: {self.concurrency} sources are read at once"
            )
            return
        if cursor is None:
            cursor = (ctx.job.reading.plan.get("from") or {}).get(self.source.slug)
        if cursor is not None and cursor["query"] != self.query:
            cursor = None
        at = None if cursor is None else cursor["at"]
        listing = self._listing(cursor)
        pages = self._due(at, ctx) if self.mode == RECHECK else self._listed(at, listing, ctx)
        async for page in pages:
            following = {"query": self.query, "at": page.next_cursor}
            if self.mode == Mode.PAGINATION:
                following["listing"] = listing.as_json(self.clock.now())
                listing.again = False
            yield replace(page, next_cursor=None if page.end else following)

    def _listing(self, cursor: Any) -> _Listing:
        """Returns the place in a listing.

        It is read from the page before: not after the wait for its gate that follows every page,
        and not twice in a row, so that every walk makes progress."""
        if self.mode != Mode.PAGINATION or cursor is None:
            return _Listing()
        kept = cursor["listing"]
        rest = self.clock.now() - datetime.fromisoformat(kept["read_at"])
        wait = timedelta(seconds=_LONGEST_WAITS * self.source.gate.max_delay_seconds)
        return _Listing(rest > max(_RESTED, wait) and not kept["again"], kept["known_pages"])

    async def _must_wait(self, ctx: Context) -> bool:
        params = {"job_id": ctx.job.id, "source": self.source.slug}
        rows = await ctx.read("regulations_streams_ahead", params)
        return int(rows[0]["ahead"]) >= self.concurrency

    # Known documents.

    async def _due(self, at: Any, ctx: Context) -> AsyncIterator[Page]:
        """Yields documents that are due.

        The time up to which they are is fixed when the walk begins: what it fetches is not due
        again."""
        now = self.clock.now()
        before = at["before"] if at else (now - timedelta(days=self.recheck_days)).isoformat()
        after = at["after"] if at else 0
        while True:
            params = {
                "source": self.source.slug,
                "before": datetime.fromisoformat(before),
                "after": after,
                "limit": _DUE_AT_ONCE,
            }
            rows = await ctx.read("regulations_due", params)
            records = [self._due_record(row) for row in rows]
            if len(rows) < _DUE_AT_ONCE:
                yield Page(records, end=True)
                return
            after = int(rows[-1]["id"])
            yield Page(records, {"before": before, "after": after})

    def _due_record(self, row: Any) -> Record:
        """Returns the record of a document; verified again, it has another version."""
        fields = {"url": row["url"], "canonical": row["canonical"], "listed_on": RECHECK}
        version = f"{RECHECK} {row['last_verified_at']}"
        return Record({"source": self.source.slug, **fields}, row["key"], version)

    # Listings.

    async def _listed(self, at: Any, listing: _Listing, ctx: Context) -> AsyncIterator[Page]:
        sentinel = ctx.job.lane is Lane.SENTINEL
        discovery = await self._discovery(ctx, sentinel)
        mode = Mode(self.mode)
        counted: Json = {}
        async for page in discovery.pages(mode, at, again=listing.again):
            notes = page.notes or {}
            counts = _flat(notes)
            page = replace(page, notes=self._notes(page, _difference(counts, counted), notes))
            counted = counts
            if sentinel and mode is Mode.PAGINATION and page.records:
                known = await _all_known(page, ctx)
                listing.known_pages = listing.known_pages + 1 if known else 0
                if listing.known_pages >= _KNOWN_PAGES and not page.end:
                    yield replace(page, next_cursor=None, end=True)
                    return
            yield page

    async def _discovery(self, ctx: Context, sentinel: bool) -> Discovery:
        today = zagreb_day(self.clock.now())
        # In January, the last issues of the old year still appear.
        first_year = today.year - (1 if today.month == 1 else 0)
        return Discovery(
            self.source,
            ctx.http,
            self.wanted,
            today.year,
            read_before=await self._read_before(ctx) if self._marks_sitemaps else None,
            indexes=await self._indexes(ctx) if self.mode == Mode.SITEMAP else None,
            first_year=first_year if sentinel else None,
        )

    @property
    def _marks_sitemaps(self) -> bool:
        """Whether sitemaps are marked as read: a run with a date range leaves URLs out that a later
        one wants."""
        return self.mode == Mode.SITEMAP and self.wanted.is_open

    async def _read_before(self, ctx: Context) -> dict[str, SitemapMark]:
        params = {"source": self.source.slug, "definition": self.definition}
        rows = await ctx.read("regulations_sitemaps_read", params)
        return {row["url"]: SitemapMark(row["modified"], row["etag"]) for row in rows}

    async def _indexes(self, ctx: Context) -> dict[str, list[Entry]]:
        params = {"job_id": ctx.job.id, "source": self.source.slug}
        rows = await ctx.read("regulations_indexes_read", params)
        return {
            row["url"]: [Entry(url, modified) for url, modified in orjson.loads(row["children"])]
            for row in rows
        }

    def _notes(self, page: Page, counts: Mapping[str, int], notes: Json) -> Json:
        acts = [
            (position, record.key, record.input["url"])
            for position, record in enumerate(page.records)
            if record.input["canonical"].startswith(_ACT)
        ]
        return {
            "source": self.source.slug,
            "definition": self.definition,
            "counts": counts,
            "forms": acts,
            "finished": notes.get("finished", ()) if self._marks_sitemaps else (),
            "indexes": notes.get("indexes", ()),
            "ended": page.end,
        }


async def _all_known(page: Page, ctx: Context) -> bool:
    keys = sorted({record.key for record in page.records if record.key})
    rows = await ctx.read("regulations_documents_of", {"keys": keys})
    return len(rows) == len(keys)


def _flat(notes: Mapping[str, Any]) -> Json:
    """Returns counts such as `refused.OFF_HOST`, since the walk began."""
    flat = {
        f"{group}.{reason}": count
        for group in _COUNTED
        for reason, count in (notes.get(group) or {}).items()
    }
    if notes.get("invalid"):
        flat["refused.INVALID"] = notes["invalid"]
    if notes.get("empty_year"):
        flat[f"empty.{notes['empty_year']}"] = 1
    return flat


def _difference(now: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    changes = {reason: count - before.get(reason, 0) for reason, count in now.items()}
    return {reason: count for reason, count in changes.items() if count > 0}


def require_source(sources: Mapping[str, Source], slug: str) -> Source:
    if slug not in sources:
        raise DiscoveryError(f"the run does not say what the source {slug} is")
    return sources[slug]
