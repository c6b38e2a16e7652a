from __future__ import annotations

import csv
import io
import itertools
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.columns import BAD_ROW, LINE
from holdfast.tables.files import TableFile, TableOptions, content_key
from holdfast.tables.records import BLANK_ROWS, EXTRA, LONG_ROWS, NO_ROWS, SHORT_ROWS
from tests.tables.reading import read, records_of, refusal


@pytest.fixture
def table(tmp_path: Path):
    def write(content: str | bytes, name: str = "table.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def test_rows_are_records_of_text(table) -> None:
    path = table("sku,id,price\n00712,1234567890123456789,1.50\n")
    assert read(path) == [{"sku": "00712", "id": "1234567890123456789", "price": "1.50"}]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiter_is_found(table, delimiter: str) -> None:
    lines = [["name", "price"], ["Chair, large; red|blue", "1,50"], ["Table", "2,50"]]
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows(lines)
    file = TableFile(table(text.getvalue()))
    assert file.detected.delimiter == delimiter
    assert records_of(file)[0] == {"name": "Chair, large; red|blue", "price": "1,50"}


def test_decimal_commas_do_not_win_over_the_semicolons_between_cells(table) -> None:
    path = table("a;b;c, EUR\n" + "1,5;2,5;3,5\n" * 50)
    assert TableFile(path).detected.columns == ("a", "b", "c, EUR")


def test_given_delimiter_wins(table) -> None:
    assert read(table("a^b,c\n1^2,3\n"), delimiter="^") == [{"a": "1", "b,c": "2,3"}]
    assert read(table("a\tb;c\n1\t2;3\n"), delimiter="tab") == [{"a": "1", "b;c": "2;3"}]
    assert "delimiter" in refusal(table("a\n1\n"), delimiter="::").message


def test_one_column_needs_no_delimiter(table) -> None:
    assert read(table("name\nAnna\nBen\n")) == [{"name": "Anna"}, {"name": "Ben"}]


@pytest.mark.parametrize("first_line", ["sep=;", "SEP=;", '"sep=;"'])
def test_separator_line_is_used_and_is_not_a_row(table, first_line: str) -> None:
    file = TableFile(table(f"{first_line}\r\na;b\r\n1,2,3;x\r\n"))
    assert records_of(file) == [{"a": "1,2,3", "b": "x"}]
    assert any("sep=;" in note for note in file.detected.notes)


@pytest.mark.parametrize(
    ("codec", "encoding"),
    [("utf-8-sig", "utf-8"), ("utf-16", "utf-16"), ("utf-32", "utf-32")],
)
def test_byte_order_mark_is_removed(table, codec: str, encoding: str) -> None:
    file = TableFile(table("näme,ort\nJosé,Köln\n".encode(codec)))
    assert file.detected.encoding == encoding
    assert file.detected.columns == ("näme", "ort")
    assert "byte order mark" in file.detected.notes[0]
    assert records_of(file) == [{"näme": "José", "ort": "Köln"}]


def test_byte_order_mark_is_removed_when_the_encoding_is_given(table) -> None:
    assert read(table('"a b",c\n1,2\n'.encode("utf-16")), encoding="utf-16-le") == [
        {"a b": "1", "c": "2"}
    ]


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1252", "name;ort\nMüller;Köln\nGrößer;Straße 5 m³\n"),
        ("cp1252", "nom,ville\nHélène,Besançon\nl’été à cœur,Nîmes\n"),
        ("cp1250", "imię,miasto\nŁukasz,Łódź\nGrażyna,Gdańsk\n"),
        ("cp1250", "jméno,město\nJiří,Plzeň\nŽofie Šťastná,Žďár\n"),
        ("cp1251", "имя,город\nИван,Москва\nОльга,Санкт-Петербург\n"),
        ("cp932", "名前,都市\n田中,東京\n鈴木,大阪\n"),
    ],
)
def test_other_encodings_are_found_and_said(table, encoding: str, text: str) -> None:
    file = TableFile(table(text.encode(encoding)))
    assert file.detected.encoding == encoding
    assert "set another encoding" in file.detected.notes[0]
    columns, first, *_ = (row.split(file.detected.delimiter) for row in text.splitlines())
    assert records_of(file)[0] == dict(zip(columns, first, strict=True))


def test_encoding_is_found_from_a_late_line(table) -> None:
    path = table(b"name,ort\n" + b"Anna,Bonn\n" * 300_000 + "Müller,Köln\n".encode("cp1252"))
    file = TableFile(path)
    assert file.detected.encoding == "cp1252"
    last = list(file.pages(299_999, lambda: 10, 1_000_000))[-1]
    assert orjson.loads(last.inputs[-1]) == {"name": "Müller", "ort": "Köln"}


def test_text_of_which_much_is_not_utf8_is_refused_at_once_with_its_line(table) -> None:
    good = "näme,ort\n".encode() + "Jürgen,Bonn\n".encode() * 200_000
    error = refusal(table(good + b"M\xfcller,K\xf6ln\n" * 1_001))
    assert "line 200,002" in error.message
    assert "1,001 lines" in error.message
    assert "--encoding" in error.hint


def test_given_encoding_that_does_not_fit_is_refused(table) -> None:
    content = b"a,b\nM\xfc,1\nM\xfc,2\n"
    assert "line 2" in refusal(table(content), encoding="utf-8").message
    assert "no encoding" in refusal(table("a\n1\n"), encoding="utf-9").message
    assert "no encoding" in refusal(table("a\n1\n"), encoding="base64").message


def test_file_with_nul_bytes_in_most_lines_is_refused(table) -> None:
    error = refusal(table(b"a,b\n1,2\n3,\x004\n5,\x006\n"))
    assert "NUL" in error.message
    assert "line 3" in error.message


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_utf16_without_a_mark_is_recognised(table, codec: str) -> None:
    path = table("name,city\nAnna,Bonn\n".encode(codec))
    assert f"encoding {codec}" in refusal(path).hint
    assert read(path, encoding=codec) == [{"name": "Anna", "city": "Bonn"}]


def test_ragged_rows_are_padded_and_counted(table) -> None:
    file = TableFile(table("a,b,c\n1\n1,2,3\n1,2,3,4,5\n\n,,\n"))
    assert records_of(file) == [
        {"a": "1", "b": "", "c": ""},
        {"a": "1", "b": "2", "c": "3"},
        {"a": "1", "b": "2", "c": "3", EXTRA: ["4", "5"]},
    ]
    assert file.problems == {SHORT_ROWS: 1, LONG_ROWS: 1, BLANK_ROWS: 2}


def test_problems_are_counted_again_and_in_full_when_reading_resumes(table) -> None:
    file = TableFile(table("a,b\n1\n1,2\n1,2,3\n"))
    for cursor in (0, 2, 3):
        records_of(file, cursor)
        assert file.problems == {SHORT_ROWS: 1, LONG_ROWS: 1}


def test_blank_and_duplicate_headers_get_names(table) -> None:
    file = TableFile(table("name,,name, price \nname_2,_extra,name,column_2\n", "a.csv"))
    assert file.detected.columns == ("name", "column_2", "name_2", "price")
    assert len(file.detected.notes) == 2
    other = TableFile(table("name,name,name_2,_extra,_extra\n1,2,3,4,5\n", "b.csv"))
    assert other.detected.columns == ("name", "name_3", "name_2", "_extra_2", "_extra_3")
    assert len(set(other.detected.columns)) == 5


def test_embedded_newlines_and_quotes_are_kept(table) -> None:
    assert read(table('a,b\r\n"1\r\n2","say ""hi"""\r\n')) == [{"a": "1\r\n2", "b": 'say "hi"'}]


def test_old_mac_line_ends_are_read(table) -> None:
    assert read(table("a,b\r1,2\r3,4")) == [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]


def test_unusual_line_separators_inside_cells_do_not_end_rows(table) -> None:
    assert read(table("a,b\n1\u2028x\x0b\x85,2\n")) == [{"a": "1\u2028x\x0b\x85", "b": "2"}]


@pytest.mark.parametrize("content", ['a,b\n1,"2\n3,4\n', 'a\n1\n"2\n3', 'a,b\n1,2\n"3', '"a,b\n1'])
def test_quote_that_is_never_closed_is_refused(table, content: str) -> None:
    assert "never closed" in refusal(table(content)).message


def test_unclosed_quote_cannot_swallow_a_large_file(table) -> None:
    path = table('a,b\n1,2\n3,"4\n' + "5,6\n" * 500_000)
    assert "Row 2 is larger than 100,000" in refusal(path, max_row_bytes=100_000).message


def test_large_cell_is_a_bad_row_that_names_the_cell_and_the_limit(table) -> None:
    path = table("a,b\n1,2\n3," + "x" * 5_000 + "\n5,6\n")
    _, bad, good = read(path, max_cell_bytes=4_999)
    assert bad[BAD_ROW] == "has a cell of more than 4,999 bytes ('b')"
    assert bad[LINE] == 3
    assert good == {"a": "5", "b": "6"}
    assert read(path, max_cell_bytes=5_000)[1]["a"] == "3"


def test_cell_above_the_csv_modules_own_limit_is_read(table) -> None:
    assert len(read(table("a,b\n1," + "x" * 1_000_000 + "\n"))[0]["b"]) == 1_000_000


def test_cell_of_100_megabytes_is_a_bad_row_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "huge.csv"
    with path.open("wb") as file:
        file.write(b"a,b\n1,2\n3,")
        for _ in range(100):
            file.write(b"x" * 1_000_000)
        file.write(b"\n5,6\n")
    program = (
        "import sys; from pathlib import Path\n"
        "from holdfast.tables.files import TableFile\n"
        "pages = list(TableFile(Path(sys.argv[1])).pages(0, lambda: 10, 10**9))\n"
        "print(*pages[0].inputs[1:])\n"
        # Not ru_maxrss: that of a child begins with its parent's.
        "peak = [l for l in Path('/proc/self/status').open() if l.startswith('VmHWM')]\n"
        "print(peak[0].split()[1])\n"
    )
    command = [sys.executable, "-c", program, str(path)]
    said, kilobytes = subprocess.check_output(command, text=True).splitlines()
    assert "has a cell of more than 10,000,000 bytes" in said
    assert said.endswith('{"a":"5","b":"6"}')
    assert int(kilobytes) < 260_000


def test_long_stretch_of_blank_rows_is_not_a_long_row(table) -> None:
    path = table("a,b\n" + ",\n" * 200_000 + "1,2\n")
    assert read(path, max_row_bytes=10_000) == [{"a": "1", "b": "2"}]


@pytest.mark.parametrize("content", ["a,b", "a,b\n", "a,b\r\n\r\n", "sep=,\na,b\n"])
def test_header_without_rows_is_reported(table, content: str) -> None:
    file = TableFile(table(content))
    assert NO_ROWS in file.detected.notes
    (page,) = file.pages(0, lambda: 10, 1000)
    assert (page.inputs, page.end, page.next_row) == ([], True, 0)


def test_missing_folder_empty_and_blank_files_are_refused(table, tmp_path: Path) -> None:
    assert "does not exist" in refusal(tmp_path / "none.csv").message
    assert "folder" in refusal(tmp_path).message
    assert "empty" in refusal(table("")).message
    assert "blank" in refusal(table("\n \n\n".replace(" ", ""))).message
    assert "regular file" in refusal(Path("/dev/null")).message


@pytest.mark.parametrize(
    ("head", "what"),
    [
        (b"BZh9", "bzip2"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old Excel"),
        (b"%PDF-1.7", "PDF"),
        (b"PAR1", "Parquet"),
        (b"<!DOCTYPE html><html>", "HTML"),
    ],
)
def test_other_kinds_of_files_are_recognised_by_content(table, head: bytes, what: str) -> None:
    assert what in refusal(table(head + b"\n1\n")).message


def test_pages_ask_for_their_size_each_time_and_are_cut_by_bytes(table) -> None:
    file = TableFile(table("a\n" + "".join(f"{n}\n" for n in range(20))))
    sizes = itertools.chain([1, 2, 4], itertools.repeat(100))
    pages = list(file.pages(0, lambda: next(sizes), max_page_bytes=50))
    assert [len(page.inputs) for page in pages] == [1, 2, 4, 6, 5, 2]
    assert [page.first_row for page in pages] == [0, 1, 3, 7, 13, 18]
    assert [page.end for page in pages] == [False] * 5 + [True]
    assert pages[3].bytes == sum(map(len, pages[3].inputs)) >= 50


@pytest.mark.parametrize("cursor", range(8))
def test_reading_from_a_cursor_gives_exactly_the_rest(table, cursor: int) -> None:
    file = TableFile(table("a,b\n0,x\n\n1\n2,x,y\n,,\n3,x\n4,x\n5,x\n6,x\n"))
    everything = records_of(file)
    assert len(everything) == 7
    assert records_of(file, cursor, page_rows=2) == everything[cursor:]


def test_cursor_beyond_the_end_means_a_changed_file(table) -> None:
    file = TableFile(table("a\n1\n2\n"))
    assert [page.end for page in file.pages(2, lambda: 5, 1000)] == [True]
    with pytest.raises(Exception, match="2 rows, but 3 were read"):
        list(file.pages(3, lambda: 5, 1000))


def test_stopping_early_closes_the_file(table) -> None:
    pages = TableFile(table("a\n1\n2\n3\n")).pages(0, lambda: 1, 1000)
    assert next(pages).inputs == ['{"a":"1"}']
    pages.close()


def test_content_key_depends_on_the_content_alone(table) -> None:
    one, two, other = table("a\n1\n", "1.csv"), table("a\n1\n", "2.csv"), table("a\n2\n", "3.csv")
    assert content_key(one) == content_key(two) != content_key(other)
    assert len(content_key(one)) == 64


def test_wrong_suffix_is_noted(table) -> None:
    file = TableFile(table("a,b\n1,2\n", "table.xlsx"))
    assert file.detected.format == "csv"
    assert "Despite its name" in file.detected.notes[0]


CELL = st.text(
    st.characters(codec="utf-8", exclude_characters="\0\ufeff", exclude_categories=["Cs"]),
    max_size=8,
)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[list[str]]]:
    width = draw(st.integers(2, 5))
    row = st.lists(CELL, min_size=width, max_size=width).filter(any)
    return [f"column {n}" for n in range(width)], draw(st.lists(row, max_size=20))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    table=tables(),
    delimiter=st.sampled_from(",;\t|"),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "gb18030"]),
    line_end=st.sampled_from(["\r\n", "\n", "\r"]),
    cursor=st.integers(0, 20),
)
def test_random_tables_come_back_equal(
    tmp_path_factory, table, delimiter, encoding, line_end, cursor
) -> None:
    columns, rows = table
    path = tmp_path_factory.getbasetemp() / "random.csv"
    with path.open("w", encoding=encoding, newline="") as file:
        quoting = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL)
        quoting.writerow(columns)
        for row in rows:
            line = io.StringIO()
            csv.writer(line, delimiter=delimiter, lineterminator="").writerow(row)
            plain = "\r" not in line.getvalue() and "\n" not in line.getvalue()
            file.write(line.getvalue() + line_end if plain else "")
            if not plain:
                quoting.writerow(row)
    found = TableFile(path, TableOptions(encoding=encoding, delimiter=delimiter))
    expected = [dict(zip(columns, row, strict=True)) for row in rows]
    assert records_of(found, page_rows=3) == expected
    assert TableFile(path, TableOptions(encoding=encoding)).detected.delimiter == delimiter
    if cursor <= len(rows):
        assert records_of(found, cursor) == expected[cursor:]


def test_sheet_of_a_text_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("title\noak\n")
    assert "has no sheets" in refusal(path, sheet="Prices").message
