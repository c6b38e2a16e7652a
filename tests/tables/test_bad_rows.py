"""Rows that cannot be read: each says where it is and why, and the others are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.columns import BAD_ROW, EXCERPT, LINE
from holdfast.tables import detect
from holdfast.tables.bad_rows import BAD_ROWS
from holdfast.tables.files import TableFile, TableOptions
from tests.tables.reading import read, records_of, refusal

NOT_TEXT = "has bytes that are not text in the file's encoding"


@pytest.fixture
def table(tmp_path: Path):
    def make(content: bytes, name: str = "table.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return make


def test_nul_makes_a_bad_row(table) -> None:
    assert read(table(b"a,b\n1,2\n3,\x004\n5,6\n")) == [
        {"a": "1", "b": "2"},
        {BAD_ROW: "holds a NUL character", LINE: 3, EXCERPT: "3,\\x004"},
        {"a": "5", "b": "6"},
    ]


@pytest.mark.parametrize("row", [b"3,4,\x00", b"\x00", b'\x00",\x00,\x00,\x00'])
def test_nul_that_looks_like_the_end_does_not_end_the_file(table, row: bytes) -> None:
    first, bad, last = read(table(b"a,b\n1,2\n" + row + b"\n5,6\n"))
    assert bad[BAD_ROW] == "holds a NUL character"
    assert (first["a"], last["a"]) == ("1", "5")


def test_undecodable_bytes_make_a_bad_row(table) -> None:
    good = "Müller,Köln\n".encode() * 50
    rows = read(table(b"name,ort\n" + good + b"M\xfcll\xe9r,K\xf6ln\n" + good))
    assert len(rows) == 101
    assert rows[50] == {BAD_ROW: NOT_TEXT, LINE: 52, EXCERPT: "M\\xfcll\\xe9r,K\\xf6ln"}
    assert rows[51] == {"name": "Müller", "ort": "Köln"}


def test_one_bad_line_before_all_others_does_not_change_the_encoding(table) -> None:
    path = table(b"name,ort\nM\xfcller,Ulm\n" + "Jürgen,Köln\n".encode() * 50)
    with TableFile(path) as file:
        assert file.detected.encoding == "utf-8"
        assert sum(BAD_ROW in row for row in records_of(file)) == 1
        assert file.problems == {BAD_ROWS: 1}


@pytest.mark.parametrize("codec", ["utf-16-le", "euc_jp", "gb18030"])
def test_undecodable_bytes_of_other_encodings_make_a_bad_row(table, codec: str) -> None:
    broken = b"\x00\xd8" if codec == "utf-16-le" else b"\xff"
    lines = ["a,b\n".encode(codec)] + ["x,y\n".encode(codec)] * 30
    lines[3] = "x,".encode(codec) + broken + "\n".encode(codec)
    rows = read(table(b"".join(lines)), encoding=codec)
    assert len(rows) == 30
    assert [index for index, row in enumerate(rows) if BAD_ROW in row] == [2]


def test_line_of_a_bad_row_counts_the_lines_within_cells(table) -> None:
    rows = read(table(b'sep=,\na,b\n1,"x\ny\nz"\n3,\x004\n'))
    assert rows[1][LINE] == 6


def test_long_line_is_left_out_in_little_memory(table) -> None:
    path = table(b"a,b\n1,2\n3," + b"x" * 3_000_000 + b"\n5,6\n" * 3)
    rows = read(path, max_row_bytes=100_000, max_cell_bytes=100_000)
    assert rows[1][BAD_ROW] == "has a cell of more than 100,000 bytes ('b')"
    assert rows[2:] == [{"a": "5", "b": "6"}] * 3


@pytest.mark.parametrize("cursor", range(6))
def test_reading_from_a_cursor_gives_the_same_rows(table, cursor: int) -> None:
    with TableFile(table(b"a,b\n1,2\n3,\x004\n5,6\n\n7,\x008\n9,10\n" + b"x,y\n" * 40)) as file:
        assert records_of(file, cursor) == records_of(file)[cursor:]


def test_excerpt_is_short_and_plain(table) -> None:
    rows = read(table(b"a,b\n1,\x00\x1b[31m\x07" + b"y" * 500 + b"\n3,4\n"))
    assert rows[0][EXCERPT].startswith("1,\\x00\\x1b[31m\\x07yyy")
    assert rows[0][EXCERPT].isprintable()
    assert len(rows[0][EXCERPT]) < 230


def test_too_many_bad_rows_stop_the_file(table) -> None:
    good, bad = b'{"a":1}\n', b"{broken\n"
    by_count = table(good * 1000 + bad * 21, "count.jsonl")
    error = refusal(by_count, max_bad_rows=20)
    assert "21 of the first 1,021 rows cannot be read" in error.message
    assert "line 1,021" in error.message
    assert "HOLDFAST_MAX_BAD_ROWS" in error.hint
    assert len(read(by_count, max_bad_rows=21)) == 1021
    by_share = table((good * 4 + bad) * 20, "share.jsonl")
    assert "11 of the first" in refusal(by_share).message
    assert len(read(by_share, max_bad_rows_share=0.2)) == 100


def test_bad_rows_before_the_cursor_count_towards_the_limit(table) -> None:
    path = table(b'{"a":1}\n' * 50 + b"{broken\n", "table.jsonl")
    with TableFile(path, TableOptions(max_bad_rows=5)) as file:
        assert [page.bad_rows for page in file.pages(0, lambda: 25, 10**6)] == [0, 0, 1]
        assert next(file.pages(50, lambda: 25, 10**6, bad_rows=4)).bad_rows == 5
        with pytest.raises(Exception, match="6 of the first 51"):
            next(file.pages(50, lambda: 25, 10**6, bad_rows=5))


def test_flawed_header_is_refused(table) -> None:
    assert "header" in refusal(table(b"a,\x00b\n" + b"1,2\n" * 30)).message


def test_reserved_name_cannot_be_forged(table) -> None:
    rows = read(table(b'{"a":1}\n{"_bad_row":"x"}\n', "table.jsonl"))
    assert rows[1][BAD_ROW] == "has a field _bad_row, a reserved name"
    assert read(table(b"_bad_row,b\nx,1\ny,2\n")) == [
        {"_bad_row_2": "x", "b": "1"},
        {"_bad_row_2": "y", "b": "2"},
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "shift_jis"])
@pytest.mark.parametrize("piece", [b"\xff", b"\xff\n"])
def test_file_of_nothing_but_bad_bytes_is_not_read_to_its_end(
    table, piece: bytes, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = table(b"sku,title\n" + piece * 30_000_000)
    read_bytes = 0
    decoded = detect._decoded

    def counted(decoder: Any, block: bytes, marking: str) -> tuple[str, bool]:
        nonlocal read_bytes
        read_bytes += len(block)
        return decoded(decoder, block, marking)

    monkeypatch.setattr(detect, "_decoded", counted)
    assert "is not entirely" in str(refusal(path, encoding=encoding))
    assert 0 < read_bytes < 20_000_000


def test_encoding_is_guessed_from_the_whole_file(table) -> None:
    """Flaws at its beginning say little about what comes after a million plain rows."""
    early = (b"caf\xe9,1\n" + b"plain,1\n" * 200) * 1_100
    late = "größe,1\n".encode() * 100_000 + b"caf\xe9,1\n" * 300
    assert "is not entirely utf-8" in str(refusal(table(b"name,n\n" + early + late)))


def test_one_row_of_bytes_is_one_bad_row(table) -> None:
    rows = "größe,1\n".encode() * 50
    content = b"name,n\n" + rows + b"\xff" * 2_000_000 + b",1\n" + rows
    assert [BAD_ROW in row for row in read(table(content), encoding="utf-8")].count(True) == 1
