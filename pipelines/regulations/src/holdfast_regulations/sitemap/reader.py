"""Reads a sitemap from its bytes, chunk by chunk: index, urlset, feed or plain text, gzipped or
not.

reader = SitemapReader()
async for chunk in reply:
    for entry in reader.feed(chunk): ...
for entry in reader.close(): ...

Entries come as soon as they are read; memory does not grow with the sitemap. Entries whose URL is
missing or unfit are returned as they are: `admission` decides, and counts.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast_regulations.sitemap.gunzip import Gunzip
from holdfast_regulations.sitemap.markup import Markup
from holdfast_regulations.sitemap.plain import PlainUrlset, is_plain
from holdfast_regulations.sitemap.problems import Entry, Fault, Kind, SitemapError

_GZIP_MAGIC = b"\x1f\x8b"
_SNIFFED_BYTES = 1024
_BLANK = b" \t\r\n"
_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the sitemap protocol for one file."""

    entries: int = 50_000
    decoded_bytes: int = 52_428_800


class TextLines:
    """A plain-text sitemap: one URL per line."""

    kind = Kind.TEXT
    _longest_line = 8192

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._rest = b""

    def feed(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(line)
        if len(self._rest) > self._longest_line:
            raise SitemapError(Fault.NOT_A_SITEMAP, "plain text without line ends")

    def close(self) -> None:
        self._take(self._rest)
        self._rest = b""

    def _take(self, line: bytes) -> None:
        url = line.decode("utf-8", "replace").strip().removeprefix("\ufeff")
        if url:
            self.entries.append(Entry(url))


class SitemapReader:
    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._gunzip: Gunzip | None = None
        self._body: Markup | PlainUrlset | TextLines | None = None
        self._beginning = b""  # held back until it is clear what it is
        self._opened = False
        self._entries_count = 0
        self._decoded_bytes = 0

    @property
    def kind(self) -> Kind | None:
        """The kind of sitemap, known once entries have come, and after `close`."""
        return None if self._body is None else self._body.kind

    @property
    def entries_count(self) -> int:
        return self._entries_count

    def feed(self, chunk: bytes) -> list[Entry]:
        """Returns the entries that end in this chunk. Raises SitemapError if it cannot continue."""
        if not self._opened:
            chunk = self._beginning + chunk
            self._beginning = b""
            if len(chunk) < len(_GZIP_MAGIC):
                self._beginning = chunk
                return []
            self._opened = True
            self._gunzip = Gunzip() if chunk.startswith(_GZIP_MAGIC) else None
        return self._unpacked(chunk)

    def close(self) -> list[Entry]:
        """Returns the last entries. Raises SitemapError if the document is incomplete."""
        if self._gunzip is not None:
            self._gunzip.close()
        if self._body is None:
            self._decode(self._beginning, last=True)
        if self._body is None:
            raise SitemapError(Fault.EMPTY, "the document is empty")
        self._body.close()
        return self._taken()

    def _unpacked(self, chunk: bytes) -> list[Entry]:
        if self._gunzip is None:
            return self._decode(chunk)
        entries: list[Entry] = []
        for piece in self._gunzip.feed(chunk):
            entries += self._decode(piece)
        return entries

    def _decode(self, data: bytes, *, last: bool = False) -> list[Entry]:
        self._decoded_bytes += len(data)
        if self._decoded_bytes > self._limits.decoded_bytes:
            raise SitemapError(
                Fault.TOO_LARGE, f"more than {self._limits.decoded_bytes:,} bytes when decoded"
            )
        if self._body is None:
            data = self._begin(data, last)
            if self._body is None:
                return []
        self._body.feed(data)
        return self._taken()

    def _begin(self, data: bytes, last: bool) -> bytes:
        """Decides what the document is; returns the part that is to be parsed so far."""
        if not last:
            data = self._beginning + data
        beginning = data.removeprefix(_MARKS[2]).lstrip(_BLANK)
        if not beginning or (len(beginning) < _SNIFFED_BYTES and not last and _is_open(beginning)):
            self._beginning = data[-_SNIFFED_BYTES:] if not beginning else data
            return b""
        self._beginning = b""
        if beginning[:1] == b"<" or data.startswith(_MARKS[:2]):
            _refuse_html(beginning)
            self._body = PlainUrlset() if is_plain(beginning) else Markup()
            # A declaration after blank lines is common and harmless, though it is not XML.
            return beginning if beginning[:1] == b"<" else data
        self._body = TextLines()
        return beginning

    def _taken(self) -> list[Entry]:
        assert self._body is not None
        entries = self._body.entries[:]
        self._body.entries.clear()
        self._entries_count += len(entries)
        if self._entries_count > self._limits.entries:
            raise SitemapError(
                Fault.TOO_MANY_ENTRIES, f"more than {self._limits.entries:,} entries"
            )
        return entries


def _is_open(beginning: bytes) -> bool:
    """Whether too little has arrived yet to see an HTML page's doctype."""
    return beginning[:1] == b"<" and b">" not in beginning


def _refuse_html(beginning: bytes) -> None:
    head = beginning[:_SNIFFED_BYTES].lower()
    if head.startswith((b"<!doctype html", b"<html", b"<head", b"<body")):
        raise SitemapError(Fault.HTML, "the document is a page, not a sitemap")


def sitemaps_in_robots(text: str) -> list[str]:
    """Returns the URLs of `Sitemap:` lines, which belong to no group of robots.txt."""
    urls: list[str] = []
    for line in text.removeprefix("\ufeff").splitlines():
        name, colon, value = line.partition(":")
        if colon and name.strip().lower() == "sitemap":
            urls.append(value.partition(" #")[0].strip())
    return list(dict.fromkeys(url for url in urls if url))
