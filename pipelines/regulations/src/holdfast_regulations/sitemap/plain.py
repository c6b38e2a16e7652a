"""Reads sitemaps as nearly all are written: `url` elements with `loc`, `lastmod`, `changefreq` and
`priority`, without prefixes, comments or entities other than `&amp;`.

One pass of a regular expression over such a stretch costs a fraction of an XML parser's events for
each URL. From the first element that does not match to the letter, the parser reads the rest: the
elements before it are complete, and say nothing about those that follow.
"""

from __future__ import annotations

import re
from itertools import repeat

from holdfast_regulations.sitemap.markup import Markup
from holdfast_regulations.sitemap.problems import Entry, Kind

_HEAD = re.compile(rb"(?:<\?xml\s[^<>]*\?>\s*)?<urlset\s(?:[^<>]*\s)?xmlns\s*=[^<>]*>")
_OTHER_ENCODING = re.compile(rb"\bencoding\s*=\s*[\"'](?!utf-8[\"'])", re.IGNORECASE)
_LONGEST_HEAD = 2048
# Begins with a letter-perfect tag: blanks before it would be tried from each of them on.
_ENTRY = re.compile(
    r"<url>[ \t\r\n]*+<loc>[ \t\r\n]*+"
    r"([^<>&\x00-\x20]*+(?:&amp;[^<>&\x00-\x20]*+)*+)[ \t\r\n]*+</loc>"
    r"(?:[ \t\r\n]*+<lastmod>[ \t\r\n]*+"
    r"([^<>&\x00-\x20]*+(?:&amp;[^<>&\x00-\x20]*+)*+)[ \t\r\n]*+</lastmod>)?+"
    r"(?:[ \t\r\n]*+<changefreq>[a-zA-Z \t\r\n]*+</changefreq>"
    r"|[ \t\r\n]*+<priority>[0-9. \t\r\n]*+</priority>)*+"
    r"[ \t\r\n]*+</url>[ \t\r\n]*+"
)
_BLANKS = " \t\r\n"
_GROUPS = 2
_LAST = b"</url>"
_LONGEST_REST = 64 * 1024  # limit of an element that has not ended: the parser has its own limits


def is_plain(beginning: bytes) -> bool:
    """Whether a document begins as one that `PlainUrlset` can read."""
    head = _HEAD.match(beginning[:_LONGEST_HEAD])
    return head is not None and _OTHER_ENCODING.search(head[0]) is None


class PlainUrlset:
    """Reads plain elements; `feed` appends to `entries`, and the caller takes them out."""

    kind = Kind.URLSET

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._head = b""
        self._rest = b""
        self._markup: Markup | None = None

    def feed(self, data: bytes) -> None:
        if self._markup is not None:
            self._parse(data)
            return
        data = self._rest + self._after_head(data)
        end = data.rfind(_LAST)
        end = 0 if end < 0 else end + len(_LAST)
        entries = _entries(data[:end])
        self._rest = b"" if entries is None else data[end:]
        if entries is None:
            self._parse(data)
            return
        self.entries += entries
        if len(self._rest) > _LONGEST_REST:
            self._parse(self._rest)

    def close(self) -> None:
        if self._markup is None:
            if self._rest.strip() == b"</urlset>":
                return
            self._parse(self._rest)
        assert self._markup is not None
        self._markup.close()

    def _after_head(self, data: bytes) -> bytes:
        if self._head:
            return data
        head = _HEAD.match(data)
        assert head is not None  # as `is_plain` said
        self._head = head[0]
        return data[head.end() :]

    def _parse(self, data: bytes) -> None:
        if self._markup is None:
            self._markup = Markup()
            self._markup.feed(self._head)
        try:
            self._markup.feed(data)
        finally:
            self.entries += self._markup.entries
            self._markup.entries.clear()


def _entries(data: bytes) -> list[Entry] | None:
    """Returns the entries; None if the data contains anything besides plain elements."""
    try:
        text = data.decode().lstrip(_BLANKS)
    except UnicodeDecodeError:
        return None
    # What is between the elements, the groups of the first, what is between, and so on.
    parts = _ENTRY.split(text)
    if any(parts[:: _GROUPS + 1]):
        return None
    urls, modified = parts[1 :: _GROUPS + 1], parts[2 :: _GROUPS + 1]
    if None in modified:
        modified = [value or "" for value in modified]
    if "&" in text:
        urls = [url.replace("&amp;", "&") for url in urls]
    return [*map(Entry._make, zip(urls, modified, repeat("")))]
