"""Decides what a reply's body is, and whether it is what was requested.

The bytes decide, not the header: servers send PDF as octet-stream and error pages as PDF.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from urllib.parse import urlsplit

import orjson

from holdfast.errors import ItemError
from holdfast_regulations.sources import MissingTable

_SNIFFED_BYTES = 1024
_MOST_ZIP_ENTRIES = 10_000
_SHORT_TEXT = 2_000  # a longer text is not an error page, whatever it says
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OLE_WORKBOOK = "Workbook".encode("utf-16-le")
# Each comment is matched once, (?>...): one that could also run on to the end of a later comment
# would be tried in 2^n ways.
_MARKUP = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:(?><!--.*?-->\s*))*+<(?:!doctype html|html|head|body)\b",
    re.I | re.S,
)
_FILE_NAMES = re.compile(r"\.(pdf|docx?|xlsx?|json)$", re.IGNORECASE)
_SAYS_MISSING = re.compile(
    r"\b404\b|(?:stranica|dokument|sadržaj)\w{0,10} (?:nije pronađen|ne postoji|nije dostup)"
    r"|tražen\w{1,10} (?:stranic\w{1,10}|sadržaj) ne|page not found|not found",
    re.IGNORECASE,
)


class ContentClass(StrEnum):
    HTML = "HTML"
    PDF_TEXT = "PDF_TEXT"
    PDF_SCANNED = "PDF_SCANNED"
    DOC = "DOC"
    XLSX = "XLSX"
    JSON = "JSON"


def content_class(body: bytes, content_type: str) -> ContentClass:
    """Returns the class of the body; every PDF is PDF_TEXT until `extract` finds no text in it.

    Raises MEDIA_FORMAT_ERROR for anything else, and CONTENT_UNAVAILABLE for an empty body."""
    head = body[:_SNIFFED_BYTES]
    if not body.strip():
        raise ItemError("CONTENT_UNAVAILABLE", "the body is empty")
    if b"%PDF-" in head:
        return ContentClass.PDF_TEXT
    if head.startswith(_OLE):
        return ContentClass.XLSX if _OLE_WORKBOOK in body else ContentClass.DOC
    if head.startswith(b"PK\x03\x04"):
        return _office(body)
    if _MARKUP.match(head) or (content_type in ("text/html", "application/xhtml+xml")):
        return ContentClass.HTML
    if _is_json(body, content_type):
        return ContentClass.JSON
    raise ItemError(
        "MEDIA_FORMAT_ERROR",
        f"neither a page, PDF, DOC, XLSX nor JSON ({content_type or 'untyped'})",
    )


def _office(body: bytes) -> ContentClass:
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            names = archive.namelist()[:_MOST_ZIP_ENTRIES]
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise ItemError("MEDIA_FORMAT_ERROR", f"a damaged ZIP file ({error})") from error
    if any(name.startswith("xl/") for name in names):
        return ContentClass.XLSX
    if any(name.startswith("word/") for name in names):
        return ContentClass.DOC
    raise ItemError("MEDIA_FORMAT_ERROR", "a ZIP file that is neither a document nor a workbook")


def _is_json(body: bytes, content_type: str) -> bool:
    typed = content_type.endswith(("/json", "+json"))
    if not typed and body.lstrip()[:1] not in (b"{", b"["):
        return False
    try:
        orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if typed:
            raise ItemError("PARSE_ERROR", f"said to be JSON, and is not: {error}") from error
        return False
    return True


def check_place(requested: str, final: str, kind: ContentClass, rules: MissingTable) -> None:
    """Refuses what is not evidence of the requested URL: a home page it was redirected to, or a
    page instead of a file. CONTENT_NOT_FOUND says which."""
    asked, came = urlsplit(requested), urlsplit(final)
    if _is_home(came.path, rules.home) and not _is_home(asked.path, rules.home):
        raise ItemError("CONTENT_NOT_FOUND", f"redirected to the home page ({final})")
    if kind is ContentClass.HTML and _FILE_NAMES.search(asked.path):
        raise ItemError("CONTENT_NOT_FOUND", f"a page came instead of the file ({final})")


def check_words(title: str, text: str, rules: MissingTable) -> None:
    """Refuses a page that answers 200 and says that there is nothing."""
    if _SAYS_MISSING.search(title) and len(text) < _SHORT_TEXT:
        raise ItemError("CONTENT_NOT_FOUND", f"a page that says 404: {title[:100]!r}")
    for pattern in rules.text:
        if pattern.search(title) or (len(text) < _SHORT_TEXT and pattern.search(text)):
            raise ItemError("CONTENT_NOT_FOUND", f"a page that says {pattern.pattern!r}")


def _is_home(path: str, homes: Sequence[str]) -> bool:
    return (path.rstrip("/") or "/") in {home.rstrip("/") or "/" for home in homes}


class Staleness(StrEnum):
    FRESH = "FRESH"
    AGING = "AGING"
    STALE = "STALE"
    UNAVAILABLE = "UNAVAILABLE"  # the last attempt failed
    EXPIRED = "EXPIRED"  # attempts have failed for long


@dataclass(frozen=True, slots=True)
class Ages:
    aging: timedelta = timedelta(days=30)
    stale: timedelta = timedelta(days=90)
    expired: timedelta = timedelta(days=90)


DEFAULT_AGES = Ages()


def staleness(
    now: datetime,
    verified_at: datetime,
    unavailable_since: datetime | None = None,
    ages: Ages = DEFAULT_AGES,
) -> Staleness:
    """Returns how far evidence can be trusted to be what the source says today."""
    if unavailable_since is not None and unavailable_since > verified_at:
        expired = now - unavailable_since >= ages.expired
        return Staleness.EXPIRED if expired else Staleness.UNAVAILABLE
    age = now - verified_at
    if age >= ages.stale:
        return Staleness.STALE
    return Staleness.AGING if age >= ages.aging else Staleness.FRESH
