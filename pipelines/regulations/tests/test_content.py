"""What a body is, what is refused as evidence, and how evidence ages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from holdfast.errors import ItemError
from holdfast_regulations.content import (
    ContentClass,
    Staleness,
    check_place,
    check_words,
    content_class,
    staleness,
)
from holdfast_regulations.sources import MissingTable
from pipelines.regulations.tests.documents import (
    ACT_TEXT,
    act_page,
    docx,
    pdf,
    scanned_pdf,
    xlsx,
    zipped,
)

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600
RULES = MissingTable.model_validate({"home": ["/", "/hr"], "text": ["Traženi zapis"]})


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (act_page(), "text/html", ContentClass.HTML),
        (act_page(), "application/octet-stream", ContentClass.HTML),
        (b"<p>a part of a page", "text/html", ContentClass.HTML),
        (b"<?xml version='1.0'?>\n<!-- x --><html><p>x", "text/xml", ContentClass.HTML),
        (pdf("Zakon"), "application/octet-stream", ContentClass.PDF_TEXT),
        (b"\n\n" + pdf("Zakon"), "text/html", ContentClass.PDF_TEXT),
        (scanned_pdf(), "application/pdf", ContentClass.PDF_TEXT),
        (docx(), "", ContentClass.DOC),
        (OLE, "application/msword", ContentClass.DOC),
        (OLE + "Workbook".encode("utf-16-le"), "", ContentClass.XLSX),
        (xlsx(), "application/zip", ContentClass.XLSX),
        (b'{"a": 1}', "application/json", ContentClass.JSON),
        (b' [{"@type": "LegalResource"}]', "application/ld+json", ContentClass.JSON),
        (b'{"a": 1}', "text/plain", ContentClass.JSON),
    ],
)
def test_bytes_decide_the_class(body: bytes, content_type: str, expected: ContentClass) -> None:
    assert content_class(body, content_type) is expected


@pytest.mark.parametrize(
    ("body", "content_type", "code"),
    [
        (b"", "text/html", "CONTENT_UNAVAILABLE"),
        (b" \n ", "text/html", "CONTENT_UNAVAILABLE"),
        (b"\x89PNG\r\n\x1a\n", "image/png", "MEDIA_FORMAT_ERROR"),
        (zipped({"a.txt": "x"}), "application/zip", "MEDIA_FORMAT_ERROR"),
        (xlsx()[:200], "", "MEDIA_FORMAT_ERROR"),
        (b'{"a": ', "application/json", "PARSE_ERROR"),
        (b"{not json", "text/plain", "MEDIA_FORMAT_ERROR"),
    ],
)
def test_other_bodies_are_refused(body: bytes, content_type: str, code: str) -> None:
    with pytest.raises(ItemError) as caught:
        content_class(body, content_type)
    assert caught.value.code == code


@pytest.mark.parametrize(
    "final", ["https://a.hr/", "https://a.hr", "https://a.hr/hr/", "https://a.hr/hr?x=1"]
)
def test_home_page_is_not_evidence_of_an_act(final: str) -> None:
    with pytest.raises(ItemError, match="CONTENT_NOT_FOUND: redirected to the home page"):
        check_place("https://a.hr/stari/akt.aspx", final, ContentClass.HTML, RULES)


def test_other_redirects_and_the_home_page_itself_are_taken() -> None:
    check_place("https://a.hr/akt", "https://a.hr/hr/akt/7", ContentClass.HTML, RULES)
    check_place("https://a.hr/", "https://a.hr/hr", ContentClass.HTML, RULES)
    check_place("https://a.hr/akt.pdf", "https://a.hr/files/7", ContentClass.PDF_TEXT, RULES)


def test_page_in_the_place_of_a_file_is_refused() -> None:
    with pytest.raises(ItemError, match="instead of the file"):
        check_place("https://a.hr/akt.PDF", "https://a.hr/akt.PDF", ContentClass.HTML, RULES)


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("404 - Porezna uprava", "Vratite se na naslovnicu."),
        ("Stranica nije pronađena", ""),
        ("Tražena stranica ne postoji", ""),
        ("Porezna uprava", "Traženi zapis je uklonjen."),
    ],
)
def test_page_that_says_404_is_refused(title: str, text: str) -> None:
    with pytest.raises(ItemError, match="CONTENT_NOT_FOUND"):
        check_words(title, text, RULES)


def test_act_that_speaks_of_such_things_is_taken() -> None:
    check_words("Pravilnik o obrascu 404", ACT_TEXT * 20, RULES)
    check_words("Pravilnik", "Traženi zapis briše se. " + ACT_TEXT * 20, RULES)
    check_words("Zakon o porezu", "Članak 404. briše se.", RULES)


NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("verified_days", "unavailable_days", "expected"),
    [
        (0, None, Staleness.FRESH),
        (29, None, Staleness.FRESH),
        (30, None, Staleness.AGING),
        (90, None, Staleness.STALE),
        (10, 5, Staleness.UNAVAILABLE),
        (10, 20, Staleness.FRESH),  # it came back since
        (200, 89, Staleness.UNAVAILABLE),
        (200, 90, Staleness.EXPIRED),
    ],
)
def test_evidence_ages(
    verified_days: int, unavailable_days: int | None, expected: Staleness
) -> None:
    since = None if unavailable_days is None else NOW - timedelta(days=unavailable_days)
    assert staleness(NOW, NOW - timedelta(days=verified_days), since) is expected
