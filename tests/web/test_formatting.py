"""How pages write figures, times and filters, and what they make of columns."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from holdfast.errors import UserError
from holdfast.features.items.filtering import column_word, parse_filter
from holdfast.features.items.value_search import Value
from holdfast.features.jobs.column_guess import guesses, kind_of
from holdfast.model import ItemStatus
from holdfast.server.formatting import cell, duration, instant, number, sentence, size
from holdfast.server.forms import parse_options


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (None, "–"), (0.004, "4 ms"), (33.4, "33 s"), (200, "3 min 20 s"), (3000, "50 min"),
        (3600, "1 h"), (5400, "1 h 30 min"), (3 * 86400 + 7200, "3 days 2 h"),
    ],
)  # fmt: skip
def test_durations_are_said_as_people_say_them(seconds: float | None, said: str) -> None:
    assert duration(seconds) == said


def test_error_is_a_sentence_with_one_full_stop() -> None:
    assert [sentence(each) for each in ("it is off", "It is off.", "", "…")] == [
        "It is off.", "It is off.", ".", "….",
    ]  # fmt: skip


def test_numbers_have_separators() -> None:
    assert [number(each) for each in (None, 0, 1234567, 4.25, 412.6)] == [
        "–", "0", "1,234,567", "4.2", "413",
    ]  # fmt: skip
    assert [size(each) for each in (0, 999, 1500, 2_000_000_000)] == [
        "0 bytes", "999 bytes", "1.5 kB", "2.0 GB",
    ]  # fmt: skip


def test_instants_keep_utc_where_the_pointer_rests() -> None:
    shown = str(instant(datetime(2026, 11, 15, 9, 12, tzinfo=UTC)))
    assert 'title="2026-11-15 09:12:00 UTC"' in shown and "datetime=" in shown


def test_cells_are_one_line_of_text() -> None:
    assert [cell(each) for each in (None, True, 1.5, {"a": [1]}, "x")] == [
        "", "true", "1.5", '{"a":[1]}', "x",
    ]  # fmt: skip


def test_filter_is_read_in_any_order() -> None:
    which = parse_filter("code:timeout  status:error,NOT_FOUND since:2026-11-15")
    assert which.items.statuses == (ItemStatus.ERROR, ItemStatus.NOT_FOUND)
    assert which.items.code == "TIMEOUT"
    assert which.items.since == datetime(2026, 11, 15, tzinfo=UTC)
    assert which.with_status("DONE") == "status:DONE code:timeout since:2026-11-15"
    assert parse_filter("error").items.statuses == (ItemStatus.ERROR,)
    assert parse_filter("row:7").row == 7
    assert parse_filter("").items.is_empty


def test_other_words_of_the_filter_name_columns() -> None:
    which = parse_filter('Status:ERROR brand:"acme inc" size:', Value)
    assert which.items.statuses == (ItemStatus.ERROR,)
    assert which.values == (Value("brand", "acme inc"), Value("size", ""))
    assert which.with_status("DONE") == 'status:DONE brand:"acme inc" size:'
    with pytest.raises(UserError):
        parse_filter("row:7 brand:acme", Value)


def test_columns_called_as_words_of_the_filter_stand_in_quotes() -> None:
    which = parse_filter(
        '"status":sold status:done "Product title":"oak chair" "row":7 "a:b":c', Value
    )
    assert which.items.statuses == (ItemStatus.DONE,) and which.row is None
    assert which.values == (
        Value("status", "sold"), Value("Product title", "oak chair"), Value("row", "7"),
        Value("a:b", "c"),
    )  # fmt: skip
    assert which.with_status("") == '"status":sold "Product title":"oak chair" "row":7 "a:b":c'
    names = ["brand", "status", "Product title", "a:b"]
    assert [column_word(name) for name in names] == [
        "brand", '"status"', '"Product title"', '"a:b"',
    ]  # fmt: skip
    with pytest.raises(UserError) as refused:
        parse_filter("status:sold", Value)
    assert '"status":sold' in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("pattern", "fitting", "others"),
    [
        ("acme", ["acme", "ACME"], ["acme inc", ""]),
        ("acme*", ["acme", "Acme Inc"], ["the acme"]),
        ("*a*b*", ["ab", "xaxbx"], ["ba"]),
        ("a*a", ["aa", "aba"], ["a"]),
        ("", [""], ["x"]),
        ("*", ["", "x"], []),
        ("a*bc*c", ["abcc", "axbcxc"], ["abc"]),
    ],
)
def test_star_matches_anything(pattern: str, fitting: list[str], others: list[str]) -> None:
    value = Value("brand", pattern)
    assert [text for text in (*fitting, *others) if value.fits(text)] == fitting


@pytest.mark.parametrize(
    "text", ["colour:red", "status:", "status:SLEEPING", "since:soon", "row:0", "row:x",
             "row:5 status:ERROR", "code:", "code:a'b", "hello"]
)  # fmt: skip
def test_filter_that_is_not_understood_says_so(text: str) -> None:
    with pytest.raises(UserError):
        parse_filter(text)


def test_columns_are_given_to_the_fields_of_the_same_name_and_never_to_a_part_of_one() -> None:
    rows = [{"Title ": "Chair", "SKU": "00412", "Sub title": "1,200.50", "x": ""}]
    found = guesses(list(rows[0]), rows, ["sku", "title"])
    assert [each.field for each in found] == ["title", "sku", None, None]
    assert [each.kind for each in found] == ["text", "text (leading zeros)", "number", "empty"]
    assert kind_of(["2026-11-15", "2026-11-16"]) == "date"
    assert kind_of(["https://a.example/x"]) == "web address"
    assert kind_of([True, False]) == "yes or no"


def test_field_goes_to_one_column_only() -> None:
    found = guesses(["title", "title of it"], [], ["title"])
    assert [each.field for each in found] == ["title", None]


def test_options_are_json_or_text() -> None:
    assert parse_options("pages=3\nname = ACME \n\nflag=true") == {
        "pages": 3, "name": "ACME", "flag": True,
    }  # fmt: skip
    for text in ("pages", "=3", "_file=x"):
        with pytest.raises(UserError):
            parse_options(text)


def test_row_number_of_thousands_of_digits_is_refused() -> None:
    with pytest.raises(UserError, match="is not a row number"):
        parse_filter("row:" + "9" * 5_000)
