"""Extracts text, title, publication date and act from what was fetched.

Blocking and slow: run it in a thread or process."""

from __future__ import annotations

import hashlib
import io
import logging
import re
from dataclasses import dataclass

import orjson
from selectolax.lexbor import LexborHTMLParser, LexborNode

from holdfast.errors import ItemError
from holdfast.text_encodings import codec_named
from holdfast.text_forms import normal_form
from holdfast_regulations.canonical import Identity, identity_of
from holdfast_regulations.content import ContentClass
from holdfast_regulations.dates import Period, date_in_url, read_date
from holdfast_regulations.sources import Source

_MOST_PDF_PAGES = 1_000
_MOST_TEXT = 10_000_000
_LONGEST_TITLE = 500
_SHORT_TEXT = 250  # below this trafilatura guesses, and takes menus for text
_LEAST_TEXT_ON_A_PAGE = 20  # characters; scans have page numbers and stamps
_DATE_TAGS = (
    'meta[property="article:published_time"]',
    'meta[name="DC.date"], meta[name="dcterms.date"], meta[name="date"]',
    'meta[property="eli:date_publication"]',
    "time[datetime]",
)
_NOT_TEXT = "script, style, noscript, nav, header, footer, form, template, svg"
_MAIN = ('main, [role="main"]', "article")
_NOT_MAIN_TEXT = "script, style, noscript, nav, footer, template, svg"
_BLOCKS = frozenset((
    "address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "fieldset",
    "figcaption", "figure", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li",
    "main", "ol", "p", "pre", "section", "table", "tbody", "thead", "tr", "ul",
))  # fmt: skip
_CELLS = frozenset(("td", "th"))


@dataclass(frozen=True, slots=True)
class Extract:
    kind: ContentClass
    title: str
    text: str | None  # None: this class has no text that we read
    published: Period | None
    act: Identity | None
    text_hash: str | None  # the same for two captures that differ only in markup


def extract(
    body: bytes, kind: ContentClass, url: str, source: Source, charset: str = ""
) -> Extract:
    """Extracts the document; raises PARSE_ERROR for a body that is damaged."""
    published = date_in_url(url, source.dates.url)
    act = identity_of(url, source.canonical.identity)
    title, text = "", None
    if kind is ContentClass.HTML:
        title, text, in_page = _page(body, charset, source.dates.selector)
        published = _finest(in_page, published)
    elif kind in (ContentClass.PDF_TEXT, ContentClass.PDF_SCANNED):
        kind, title, pages = _pdf(body)
        text = pages if pages.strip() else None
    elif kind is ContentClass.JSON:
        text = _json_text(body)
    text = text and text.replace("\0", "")  # PostgreSQL does not store NUL
    return Extract(kind, title, text, published, act, None if text is None else text_hash(text))


def normalised(text: str) -> str:
    """Returns the text in one form of Unicode, without soft hyphens, with single spaces, and
    without NUL, which PostgreSQL refuses."""
    composed = normal_form("NFC", text.replace("\u00ad", "").replace("\0", ""))
    return " ".join(composed.split())


def text_hash(text: str) -> str:
    return hashlib.sha256(normalised(text).encode()).hexdigest()


def _finest(first: Period | None, second: Period | None) -> Period | None:
    """Returns the page's own date, unless only the URL gives a day."""
    if first is None or (second is not None and second.is_day and not first.is_day):
        return second
    return first


def _page(body: bytes, charset: str, selector: str | None) -> tuple[str, str, Period | None]:
    html = _decoded(body, charset)
    tree = LexborHTMLParser(html)
    title, published = _title(tree), _date(tree, selector)
    text = _own_main(tree)
    if len(text) < _SHORT_TEXT:
        text = _guessed_main(html)
    if len(text) < _SHORT_TEXT:
        text = _all_text(tree)
    return title, text[:_MOST_TEXT], published


def _own_main(tree: LexborHTMLParser) -> str:
    """Returns the text, block by block, of the one element that the page marks as its main part."""
    for selector in _MAIN:
        elements = tree.css(selector)
        if len(elements) == 1:
            return _block_text(elements[0])
    return ""


def _block_text(element: LexborNode) -> str:
    """Returns the text of the element, from which it removes what is not text."""
    for other in element.css(_NOT_MAIN_TEXT):
        other.decompose()
    parts: list[str] = []
    for node in element.traverse(include_text=True):
        if node.tag == "-text":
            parts.append(node.text_content or "")
        elif node.tag in _BLOCKS:
            parts.append("\n")
        elif node.tag in _CELLS:
            parts.append(" ")
    lines = (" ".join(line.split()) for line in "".join(parts).split("\n"))
    return "\n".join(line for line in lines if line)


def _guessed_main(html: str) -> str:
    import trafilatura  # slow to import, and most pages do not need it

    document = trafilatura.bare_extraction(
        html, favor_recall=True, include_comments=False, include_tables=True, with_metadata=False
    )
    return getattr(document, "text", None) or ""


def _decoded(body: bytes, charset: str) -> str:
    """Decodes by the header's charset, then the page's own, then UTF-8."""
    declared = re.search(rb"charset\s*=\s*[\"']?([\w.:-]+)", body[:2048])
    for name in (charset, declared[1].decode("ascii") if declared else "", "utf-8"):
        codec = codec_named(name) if name else None
        try:
            if codec is not None:
                return body.decode(codec)
        except UnicodeDecodeError:
            continue
    return body.decode("utf-8", "replace")


def _title(tree: LexborHTMLParser) -> str:
    for selector in ('meta[property="og:title"]', "h1", "title"):
        for element in tree.css(selector):
            title = normalised(element.attributes.get("content") or element.text())
            if title:
                return title[:_LONGEST_TITLE]
    return ""


def _date(tree: LexborHTMLParser, selector: str | None) -> Period | None:
    for tag in (*([selector] if selector else []), *_DATE_TAGS):
        for element in tree.css(tag)[:3]:
            attributes = element.attributes
            published = read_date(
                attributes.get("content") or attributes.get("datetime") or element.text()
            )
            if published is not None:
                return published
    return None


def _all_text(tree: LexborHTMLParser) -> str:
    """Returns all text, for pages too short for trafilatura to find their main part.

    It takes the tree apart."""
    for element in tree.css(_NOT_TEXT):
        element.decompose()
    return normalised(tree.body.text(separator=" ")) if tree.body is not None else ""


def _pdf(body: bytes) -> tuple[ContentClass, str, str]:
    from pypdf import PdfReader  # see `_guessed_main`
    from pypdf.errors import PyPdfError

    logging.getLogger("pypdf").setLevel(logging.ERROR)  # it warns about every faulty file
    try:
        reader = PdfReader(io.BytesIO(body))
        parts = [_whole(page.extract_text()) for page in reader.pages[:_MOST_PDF_PAGES]]
        title = normalised(_whole(str(reader.metadata.title or ""))) if reader.metadata else ""
    except (PyPdfError, ValueError, KeyError, TypeError, OSError, RecursionError) as error:
        raise ItemError(
            "PARSE_ERROR", f"a damaged PDF ({type(error).__name__}: {error})"
        ) from error
    text = "\n\n".join(parts)[:_MOST_TEXT]
    scanned = len(normalised(text)) < _LEAST_TEXT_ON_A_PAGE * max(1, len(parts))
    kind = ContentClass.PDF_SCANNED if scanned else ContentClass.PDF_TEXT
    return kind, title[:_LONGEST_TITLE], text


def _whole(text: str) -> str:
    """Replaces halves of characters, which no database stores, by whole ones: fonts in PDFs name
    them one by one."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _json_text(body: bytes) -> str:
    """Returns JSON sorted by key, so that the order in which a server writes keys makes no new
    version."""
    value = orjson.loads(body)
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS).decode()
