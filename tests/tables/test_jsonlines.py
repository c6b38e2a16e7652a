from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.columns import BAD_ROW, EXCERPT, LINE
from holdfast.tables.files import TableFile
from holdfast.tables.records import BLANK_ROWS, NO_ROWS
from tests.tables.reading import read, records_of, refusal


@pytest.fixture
def lines(tmp_path: Path):
    def write(content: str | bytes, name: str = "table.jsonl") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def test_each_line_is_kept_unchanged(lines) -> None:
    first = '{"id": 12345678901234567890123, "price": 1.10, "tags": ["a", {"b": null}]}'
    file = TableFile(lines(f'{first}\r\n\n  {{"id":2,"name":"ä"}}  \n'))
    (page,) = file.pages(0, lambda: 10, 10_000)
    assert page.inputs == [first, '{"id":2,"name":"ä"}']
    assert file.problems == {BLANK_ROWS: 1}


def test_columns_are_those_of_the_first_lines(lines) -> None:
    file = TableFile(lines('{"a":1}\n{"b":2,"a":3}\n'))
    assert file.detected.format == "jsonl"
    assert file.detected.columns == ("a", "b")


@pytest.mark.parametrize("name", ["table.csv", "table.txt", "table"])
def test_json_lines_are_recognised_by_content(lines, name: str) -> None:
    assert read(lines('{"a":1,"b":2}\n{"a":2,"b":2}\n', name))[1] == {"a": 2, "b": 2}


def test_header_that_begins_with_a_brace_is_still_csv(lines) -> None:
    assert read(lines("{a},b\n1,2\n", "table.csv")) == [{"{a}": "1", "b": "2"}]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_byte_order_mark_is_removed(lines, encoding: str) -> None:
    assert read(lines('{"a":"ö"}\n'.encode(encoding))) == [{"a": "ö"}]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"a":', "not valid JSON"),
        ('{"a":NaN}', "not valid JSON"),
        ('{"a":"\\ud800"}', "not valid JSON"),
        ('{"a":' + "[" * 5000 + "]" * 5000 + "}", "not valid JSON"),
        ("[1]", "not a JSON object"),
        ("17", "not a JSON object"),
        ('{"a":"x\\u0000"}', "NUL"),
        ('{"\\u0000":1}', "NUL"),
    ],
)
def test_bad_line_is_a_bad_row(lines, line: str, what: str) -> None:
    first, bad, last = read(lines('{"a":1}\n\n' + line + '\n{"a":2}\n'))
    assert (first, last) == ({"a": 1}, {"a": 2})
    assert bad[LINE] == 3
    assert what in bad[BAD_ROW]
    assert bad[EXCERPT].startswith(line[:40])


def test_file_none_of_whose_lines_can_be_read_is_refused(lines) -> None:
    assert "line 1 is not valid JSON" in refusal(lines("a\nb\n", "table.jsonl")).message


def test_escaped_backslash_before_u0000_is_not_a_nul(lines) -> None:
    assert read(lines('{"a":"\\\\u0000"}\n')) == [{"a": "\\u0000"}]


def test_array_is_refused_with_the_way_out(lines) -> None:
    assert "jq" in refusal(lines('[{"a":1},\n{"a":2}]\n', "table.json")).hint


def test_object_over_several_lines_is_refused(lines) -> None:
    assert "line 1" in refusal(lines('{\n  "a": 1\n}\n', "table.json")).message


def test_line_that_is_too_long_is_a_bad_row(lines) -> None:
    path = lines('{"a":1}\n{"a":"' + "x" * 1_000_000 + '"}\n{"a":3}\n')
    first, bad, last = read(path, max_row_bytes=50_000)
    assert bad[BAD_ROW] == "is larger than 50,000 bytes"
    assert (first, bad[LINE], last) == ({"a": 1}, 2, {"a": 3})


def test_blank_file_has_no_rows(lines) -> None:
    assert NO_ROWS in TableFile(lines("\n\n")).detected.notes


@pytest.mark.parametrize("cursor", range(5))
def test_reading_from_a_cursor_gives_exactly_the_rest(lines, cursor: int) -> None:
    file = TableFile(lines("\n".join(f'{{"n":{n}}}\n' for n in range(4))))
    assert records_of(file, cursor, page_rows=1) == [{"n": n} for n in range(cursor, 4)]
