"""Parses sitemap and feed XML by expat's events: no tree, no entities, nothing external.

Expat is used instead of lxml: an lxml pull parser that also removes what it has read takes half as
long again. Only element ends are looked at in a sitemap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from xml.parsers import expat

from holdfast_regulations.sitemap.problems import Entry, Fault, Kind, SitemapError

_ROOTS = {
    "urlset": (Kind.URLSET, "url"),
    "sitemapindex": (Kind.INDEX, "sitemap"),
    "rss": (Kind.FEED, "item"),
    "RDF": (Kind.FEED, "item"),
    "feed": (Kind.FEED, "entry"),
}
_MOST_TEXT = 2 << 20  # characters in one element
_SEPARATOR = " "
# Names without their namespace: RSS has none, Atom has one, RDF takes dates from Dublin Core.
_FEED_FIELDS = {
    "link": "url",
    "pubDate": "published",
    "published": "published",
    "date": "published",
    "updated": "modified",
}


class Markup:
    """Parses markup; `feed` appends to `entries`, and the caller takes them out."""

    def __init__(self) -> None:
        self.kind: Kind | None = None
        self.entries: list[Entry] = []
        self._text: list[str] = []
        self._parser = expat.ParserCreate(None, _SEPARATOR)
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._root
        self._parser.EntityDeclHandler = _refuse_entities

    def feed(self, data: bytes) -> None:
        self._parse(data, False)
        if len(self._text) > 1 and sum(map(len, self._text)) > _MOST_TEXT:
            raise SitemapError(Fault.TOO_LARGE, "an element has more than 2 MiB of text")

    def close(self) -> None:
        self._parse(b"", True)

    def _parse(self, data: bytes, last: bool) -> None:
        try:
            self._parser.Parse(data, last)
        except expat.ExpatError as error:
            raise SitemapError(Fault.MALFORMED, str(error)) from error

    def _root(self, name: str, _attributes: dict[str, str]) -> None:
        space, _, local = name.rpartition(_SEPARATOR)
        if local.lower() == "html":
            raise SitemapError(Fault.HTML, "the document is a page, not a sitemap")
        if local not in _ROOTS:
            raise SitemapError(Fault.NOT_A_SITEMAP, f"the root element is {local[:60]!r}")
        self.kind, record = _ROOTS[local]
        if self.kind is Kind.FEED:
            self._parser.StartElementHandler, end = _feed_handlers(record, self._text, self.entries)
        else:
            self._parser.StartElementHandler = None
            end = _sitemap_handler(space, record, self._text, self.entries)
        self._parser.EndElementHandler = end
        self._parser.CharacterDataHandler = self._text.append


def _refuse_entities(*_declaration: Any) -> None:
    raise SitemapError(Fault.DECLARES_ENTITIES, "the document declares entities of its own")


def _sitemap_handler(
    space: str, record: str, text: list[str], entries: list[Entry]
) -> Callable[[str], None]:
    """Returns a closure over locals: it runs five times for each URL, and attributes would cost a
    third of it. Text outside of elements runs into the next one's, and makes its URL invalid."""
    prefix = space + _SEPARATOR if space else ""
    loc, lastmod, whole = prefix + "loc", prefix + "lastmod", prefix + record
    url = modified = ""

    def end(name: str) -> None:
        nonlocal url, modified
        if name == loc:
            url = "".join(text).strip()
        elif name == lastmod:
            modified = "".join(text).strip()
        elif name == whole:
            entries.append(Entry(url, modified))
            url = modified = ""
        text.clear()

    return end


def _feed_handlers(
    record: str, text: list[str], entries: list[Entry]
) -> tuple[Callable[[str, dict[str, str]], None], Callable[[str], None]]:
    fields: dict[str, str] = {}
    inside = False

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal inside
        text.clear()
        local = name.rpartition(_SEPARATOR)[2]
        if local == record:
            inside = True
            fields.clear()
        elif inside and local == "link" and attributes.get("rel", "alternate") == "alternate":
            fields.setdefault("url", attributes.get("href", ""))

    def end(name: str) -> None:
        nonlocal inside
        local = name.rpartition(_SEPARATOR)[2]
        if local == record:
            inside = False
            entries.append(
                Entry(
                    fields.get("url", ""), fields.get("modified", ""), fields.get("published", "")
                )
            )
        elif inside and local in _FEED_FIELDS:
            value = "".join(text).strip()
            if value:
                fields[_FEED_FIELDS[local]] = value
        text.clear()

    return start, end
