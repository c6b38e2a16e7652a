"""What a body is, what is refused as evidence, and how evidence ages."""

from __future__ import annotations

from contextlib import nullcontext
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
    ("requested", "final", "is_taken"),
    [
        ("https://a.hr/stari/akt.aspx", "https://a.hr/", False),
        ("https://a.hr/stari/akt.aspx", "https://a.hr", False),
        ("https://a.hr/stari/akt.aspx", "https://a.hr/hr/", False),
        ("https://a.hr/stari/akt.aspx", "https://a.hr/hr?x=1", False),
        ("https://a.hr/stari/akt.aspx", "https://a.hr/hr/akt/7", True),
        ("https://a.hr/", "https://a.hr/hr", True),
    ],
)
def test_home_page_is_evidence_only_of_itself(requested: str, final: str, is_taken: bool) -> None:
    refusal = "CONTENT_NOT_FOUND: redirected to the home page"
    with nullcontext() if is_taken else pytest.raises(ItemError, match=refusal):
        check_place(requested, final, ContentClass.HTML, RULES)


@pytest.mark.parametrize(
    ("final", "kind", "is_taken"),
    [
        ("https://a.hr/akt.PDF", ContentClass.HTML, False),
        ("https://a.hr/akt.PDF", ContentClass.PDF_TEXT, True),
        ("https://a.hr/files/7", ContentClass.PDF_TEXT, True),
    ],
)
def test_page_in_the_place_of_a_file_is_refused(
    final: str, kind: ContentClass, is_taken: bool
) -> None:
    with nullcontext() if is_taken else pytest.raises(ItemError, match="instead of the file"):
        check_place("https://a.hr/akt.PDF", final, kind, RULES)


@pytest.mark.parametrize(
    ("title", "text", "is_taken"),
    [
        ("404 - Porezna uprava", "Vratite se na naslovnicu.", False),
        ("Stranica nije pronađena", "", False),
        ("Tražena stranica ne postoji", "", False),
        ("Porezna uprava", "Traženi zapis je uklonjen.", False),
        ("Pravilnik", "Traženi zapis briše se. ", False),
        # An act that speaks of such things, at length or as an act does:
        ("Pravilnik", "Traženi zapis briše se. " + ACT_TEXT * 20, True),
        ("Pravilnik o obrascu 404", ACT_TEXT * 20, True),
        ("Zakon o porezu", "Članak 404. briše se.", True),
    ],
)
def test_page_that_says_404_is_refused(title: str, text: str, is_taken: bool) -> None:
    with nullcontext() if is_taken else pytest.raises(ItemError, match="CONTENT_NOT_FOUND"):
        check_words(title, text, RULES)


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
