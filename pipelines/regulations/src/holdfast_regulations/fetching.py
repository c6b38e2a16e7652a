"""Fetches one URL: what arrived, whether it is what was requested, and what is new about it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from holdfast.clock import Clock
from holdfast.errors import ItemError, NotFound, Skip
from holdfast.loader import Loader
from holdfast.model import Json
from holdfast.pipeline import Context, Done
from holdfast_regulations import bodies
from holdfast_regulations.bodies import Body
from holdfast_regulations.canonical import item_id
from holdfast_regulations.dates import DateRange, Fit
from holdfast_regulations.extract import Extract
from holdfast_regulations.nesting import is_too_nested
from holdfast_regulations.reading import PAGES, FetchedPage, read_page
from holdfast_regulations.sources import Source

COLUMNS = (
    "id", "source", "title", "published", "act", "class", "evidence", "size", "sha256", "url",
    "final_url", "captured_at", "found_by",
)  # fmt: skip
_LONGEST_HEADER = 2_000
_MOST_HEADERS = 100
_READ_AT_ONCE = 32 * 1024  # a page of this size is read in a few milliseconds
_LOAD_SECONDS = 0.002
KNOWN, BODIES = "known", "bodies"
#: Never stored: they belong to a session, not to the document.
_PRIVATE_HEADERS = frozenset({"set-cookie", "set-cookie2"})


class Reason(StrEnum):
    """What a capture added to what was known: how its content is deduped, per item."""

    NEW = "NEW"  # the first evidence of this document
    CHANGED = "CHANGED"  # another text
    SAME_TEXT = "SAME_TEXT"  # other bytes, the same text
    UNCHANGED = "UNCHANGED"  # the same bytes, or the server said so
    RETURNED = "RETURNED"  # bytes that the document had before its last ones
    COPY = "COPY"  # the first of this document, with the bytes of another one


@dataclass(frozen=True, slots=True)
class Capture:
    """The effects of an item: everything that `save` writes about it."""

    key: str
    source: str
    canonical: str
    url: str
    final_url: str
    captured_at: datetime
    status: int
    headers: list[tuple[str, str]]
    sha256: str
    size: int
    reason: Reason
    content_type: str
    etag: str | None
    body: Body | None  # None: the server said that nothing changed
    extract: Extract | None


class Fetcher:
    """Fetches the items of one source in one job."""

    def __init__(
        self, source: Source, wanted: DateRange, clock: Clock, most_in_database: int
    ) -> None:
        self._source = source
        self._wanted = wanted
        self._clock = clock
        self._most_in_database = most_in_database

    async def fetch(self, row: Json, ctx: Context) -> Done:
        key = item_id(row["source"], row["canonical"])
        known = await _known(key, row, ctx)
        reply = await self._get(row["url"], known, ctx)
        captured_at = self._clock.now()
        if reply.status == 304:
            capture = _unchanged(key, row, known, reply, captured_at)
        else:
            capture = await self._captured(key, row, known, reply, captured_at, ctx)
        return Done(_result(capture, known, ctx), capture)

    async def _get(self, url: str, known: Any, ctx: Context) -> Any:
        etag = known["etag"] if known is not None and known["url"] == url else None
        headers = {"If-None-Match": etag} if etag else {}
        reply = await ctx.http.get(
            url,
            headers=headers,
            max_bytes=self._source.caps.max_bytes,
            raise_for_status=False,
        )
        if reply.status in (404, 410):
            raise NotFound(f"{url} answered {reply.status}")
        if reply.status == 304 and etag is None:
            raise ItemError("INVALID_RESPONSE", f"{url} answered 304 to a request without an ETag")
        reply.raise_for_status()
        return reply

    async def _captured(
        self, key: str, row: Json, known: Any, reply: Any, captured_at: datetime, ctx: Context
    ) -> Capture:
        url, content = row["url"], reply.content
        _require_host(url, reply.url, self._source)
        page = FetchedPage(url, reply.url, content, reply.content_type, _charset(reply))
        if _is_plain(page):
            extracted, sha256 = read_page(page, self._source), _sha256(content)
        else:  # wait for the process that reads pages
            extracted = await asyncio.to_thread(PAGES.read, page, self._source)
            sha256 = await asyncio.to_thread(_sha256, content)
        self._require_wanted(extracted)
        body = await bodies.store(content, sha256, ctx.files, self._most_in_database)
        reason = await _reason(key, known, sha256, extracted.text_hash, ctx)
        return Capture(
            key=key,
            source=self._source.slug,
            canonical=row["canonical"],
            url=url,
            final_url=reply.url,
            captured_at=captured_at,
            status=reply.status,
            headers=_headers(reply),
            sha256=sha256,
            size=len(content),
            reason=reason,
            content_type=reply.content_type,
            etag=reply.headers.get("etag"),
            body=body,
            extract=extracted,
        )

    def _require_wanted(self, extracted: Extract) -> None:
        """Refuses a document outside of the range: a URL may name only the month; the page says the
        day."""
        if self._wanted.fit(extracted.published) is Fit.OUTSIDE:
            raise Skip(f"published {extracted.published}, outside of the range of the run")


def _is_plain(page: FetchedPage) -> bool:
    """Whether it is a small page that every parser reads at once."""
    return (
        len(page.content) <= _READ_AT_ONCE
        and page.content_type == "text/html"
        and not is_too_nested(page.content.decode("latin-1"))
    )


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


async def _known(key: str, row: Json, ctx: Context) -> Any:
    """Returns the document as it is stored, with its latest evidence."""
    known = await ctx.load(KNOWN, key)
    if known is not None and known["canonical"] != row["canonical"]:
        raise ItemError("INTERNAL_ERROR", f"{key} already means {known['canonical']}")
    return known


async def fetch_known(keys: Sequence[str], ctx: Any) -> dict[str, Any]:
    rows = await ctx.read("regulations_known", {"keys": list(keys)})
    return {row["key"]: row for row in rows}


async def fetch_stored_bodies(hashes: Sequence[str], ctx: Any) -> dict[str, bool]:
    rows = await ctx.read("regulations_stored_bodies", {"hashes": list(hashes)})
    return {row["sha256"]: True for row in rows}


#: What concurrent items ask of the database, together.
LOADERS = {
    KNOWN: Loader(fetch_known, wait_seconds=_LOAD_SECONDS),
    BODIES: Loader(fetch_stored_bodies, wait_seconds=_LOAD_SECONDS),
}


def _require_host(requested: str, final: str, source: Source) -> None:
    host = urlsplit(final).netloc.lower()
    if host not in source.hosts and host != urlsplit(requested).netloc.lower():
        raise ItemError("CONTENT_NOT_FOUND", f"redirected to another site ({final})")


async def _reason(
    key: str, known: Any, sha256: str, text_sha256: str | None, ctx: Context
) -> Reason:
    if known is None or known["sha256"] is None:
        return Reason.COPY if await ctx.load(BODIES, sha256) else Reason.NEW
    if known["sha256"] == sha256:
        return Reason.UNCHANGED
    if await ctx.read("regulations_has_version", {"key": key, "sha256": sha256}):
        return Reason.RETURNED
    same_text = text_sha256 is not None and text_sha256 == known["text_sha256"]
    return Reason.SAME_TEXT if same_text else Reason.CHANGED


def _unchanged(key: str, row: Json, known: Any, reply: Any, captured_at: datetime) -> Capture:
    return Capture(
        key=key,
        source=row["source"],
        canonical=row["canonical"],
        url=row["url"],
        final_url=reply.url,
        captured_at=captured_at,
        status=reply.status,
        headers=_headers(reply),
        sha256=known["sha256"],
        size=known["size"],
        reason=Reason.UNCHANGED,
        content_type=known["content_type"],
        etag=known["etag"],
        body=None,
        extract=None,
    )


def _headers(reply: Any) -> list[tuple[str, str]]:
    shown = [pair for pair in reply.headers.multi_items() if pair[0] not in _PRIVATE_HEADERS]
    return [(name, value[:_LONGEST_HEADER]) for name, value in shown[:_MOST_HEADERS]]


def _charset(reply: Any) -> str:
    _, found, name = reply.headers.get("content-type", "").lower().partition("charset=")
    return name.strip(" \"'") if found else ""


def _result(capture: Capture, known: Any, ctx: Context) -> Json:
    extracted = capture.extract
    if extracted is None:
        about = {
            "title": known["title"],
            "published": known["published"],
            "act": known["eli"],
            "class": known["content_class"],
        }
    else:
        about = {
            "title": extracted.title,
            "published": str(extracted.published) if extracted.published else None,
            "act": extracted.act.eli if extracted.act else None,
            "class": extracted.kind.value,
        }
    return {
        "id": capture.key,
        "source": capture.source,
        **about,
        "evidence": capture.reason.value,
        "size": capture.size,
        "sha256": capture.sha256,
        "url": capture.url,
        "final_url": capture.final_url,
        "captured_at": capture.captured_at.isoformat(timespec="milliseconds"),
        "found_by": ctx.job.lane.value,
    }
