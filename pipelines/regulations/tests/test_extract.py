"""Text, title, date and act of fetched documents."""

from __future__ import annotations

import pytest

from holdfast.errors import ItemError
from holdfast_regulations.canonical import Identity
from holdfast_regulations.content import ContentClass
from holdfast_regulations.dates import period, read_date
from holdfast_regulations.extract import Extract, extract, normalised, text_hash
from holdfast_regulations.sources_file import shipped_sources
from pipelines.regulations.tests.documents import act_page, docx, halved_pdf, pdf, scanned_pdf

GAZETTE = shipped_sources()["narodne-novine"]
LEGACY = "https://narodne-novine.nn.hr/clanci/sluzbeni/2024_03_25_412.html"


def page(body: bytes, url: str = LEGACY, charset: str = "") -> Extract:
    return extract(body, ContentClass.HTML, url, GAZETTE, charset)


def test_page_gives_title_text_day_and_act() -> None:
    result = page(act_page())
    assert result.title == "Zakon o fiskalizaciji"
    assert result.text is not None
    assert "obveza fiskalizacije" in result.text
    assert "Izbornik" not in result.text
    assert "Sva prava" not in result.text
    assert result.published == read_date("2024-03-05")
    assert result.act == Identity("sluzbeni", 2024, 25, "412")


def test_hash_of_the_text_ignores_markup_and_follows_words() -> None:
    first, again = page(act_page()), page(act_page(noise='<script>var t="8f3";</script>'))
    changed = page(act_page(text="Posve drugi tekst zakona, dovoljno dug da ostane glavni dio."))
    assert first.text_hash == again.text_hash
    assert first.text_hash != changed.text_hash
    assert text_hash("a\u00adb  c\n") == text_hash("ab c") != text_hash("abc")


def test_nul_of_a_pdf_is_left_out() -> None:
    """PostgreSQL takes none, and the stored text must have the hash that is stored with it."""
    assert normalised("Za\0kon") == "Zakon" and text_hash("a\0b") == text_hash("ab")


def test_halves_of_characters_in_a_pdf_become_characters() -> None:
    """No database takes them, and the document would be refused for one letter."""
    result = extract(halved_pdf(), ContentClass.PDF_TEXT, "https://a.hr/x.pdf", GAZETTE)
    assert result.text == "\ufffdakon o porezu na \U0001d400, u cijelosti"


def test_short_page_still_has_its_text() -> None:
    result = page(
        b"<html><body><nav>Izbornik</nav><p>Ispravak.</p><script>x</script></body></html>"
    )
    assert result.text == "Ispravak."
    assert result.published == period(2024, 3)  # the URL says the month


@pytest.mark.parametrize(
    ("charset", "meta"),
    [
        ("windows-1250", ""),
        ("", '<meta charset="windows-1250">'),
        ("x-unknown", "<meta charset=cp1250>"),
    ],
)
def test_charset_of_header_or_page_is_used(charset: str, meta: str) -> None:
    html = f"<html><head>{meta}<title>Članak žeton</title></head><body><p>Šuma</p></body></html>"
    result = page(html.encode("windows-1250"), charset=charset)
    assert result.title == "Članak žeton"


def test_date_by_the_selector_of_the_source() -> None:
    rules = GAZETTE.dates.model_copy(update={"selector": ".objava"})
    source = GAZETTE.model_copy(update={"dates": rules})
    body = act_page(noise='<p class="objava">Objavljeno 7. ožujka 2024.</p>')
    result = extract(body, ContentClass.HTML, LEGACY, source)
    assert result.published == read_date("2024-03-07")


def test_pdf_with_text_and_scanned_pdf_are_told_apart() -> None:
    text = extract(
        pdf("Zakon o porezu na dodanu vrijednost", "Clanak drugi ovoga zakona"),
        ContentClass.PDF_TEXT,
        LEGACY,
        GAZETTE,
    )
    assert text.kind is ContentClass.PDF_TEXT
    assert text.text is not None
    assert "dodanu vrijednost" in text.text
    assert "Clanak drugi" in text.text
    scan = extract(scanned_pdf(), ContentClass.PDF_TEXT, LEGACY, GAZETTE)
    assert (scan.kind, scan.text, scan.text_hash) == (ContentClass.PDF_SCANNED, None, None)


@pytest.mark.parametrize("body", [b"%PDF-1.4\nnothing", pdf("Zakon")[:120], b"%PDF-" + b"\0" * 100])
def test_damaged_pdf_is_an_error_of_its_own(body: bytes) -> None:
    with pytest.raises(ItemError, match="PARSE_ERROR: a damaged PDF"):
        extract(body, ContentClass.PDF_TEXT, LEGACY, GAZETTE)


def test_json_has_the_same_hash_in_any_order_of_keys() -> None:
    first = extract(b'{"b": 1, "a": [2]}', ContentClass.JSON, LEGACY, GAZETTE)
    second = extract(b'{"a":[2],"b":1}', ContentClass.JSON, LEGACY, GAZETTE)
    assert first.text_hash == second.text_hash is not None


def test_document_without_a_reader_has_no_text() -> None:
    result = extract(docx(), ContentClass.DOC, LEGACY, GAZETTE)
    assert (result.kind, result.text) == (ContentClass.DOC, None)
    assert result.act is not None
