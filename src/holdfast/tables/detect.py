"""Finds out what a file is: its format, its encoding, its delimiter."""

from __future__ import annotations

import codecs
import csv
import io
import re
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import orjson

from holdfast.errors import InputError
from holdfast.tables.content import Content
from holdfast.tables.types import TableOptions
from holdfast.text_encodings import codec_named

HEAD_BYTES = 1 << 16
BLOCK_BYTES = 1 << 20
DELIMITERS = (",", ";", "\t", "|")
DELIMITER_NAMES = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig", "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32", "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32", "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16", "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16", "utf-16"),
)

_FOREIGN = (
    (b"\x1f\x8b", "packed twice", "Unpack it first: gunzip FILE."),
    (b"\x28\xb5\x2f\xfd", "packed twice", "Unpack it first: unzstd FILE."),
    (b"PK\x03\x04", "a packed workbook or archive", "Unpack it first."),
    (b"BZh", "a bzip2 archive", "Unpack it first: bunzip2 FILE."),
    (b"\xfd7zXZ\x00", "an xz archive", "Unpack it first: unxz FILE."),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", "Unpack it first."),
    (b"Rar!", "a RAR archive", "Unpack it first."),
    (
        b"\xd0\xcf\x11\xe0",
        "an old Excel file (.xls) or a workbook with a password",
        "Save it as .xlsx without a password, or as CSV.",
    ),
    (b"%PDF", "a PDF document", "Give a CSV, XLSX or JSON-lines file."),
    (b"PAR1", "a Parquet file", "Convert it to CSV or JSON lines first."),
    (b"SQLite format 3", "an SQLite database", "Export the table as CSV first."),
    (b"\x89PNG", "an image", "Give a CSV, XLSX or JSON-lines file."),
    (b"\xff\xd8\xff", "an image", "Give a CSV, XLSX or JSON-lines file."),
)

#: Encodings that are really used for tables. Guessing among all that exist finds mainframe and DOS
#: code pages in short samples.
_LIKELY = [
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1258"),
    *("cp932", "euc_jp", "gb18030", "big5", "cp949", "koi8_r"),
]
#: Bytes that are letters in Czech, Polish, Croatian … words and symbols in Western text.
_CENTRAL_EUROPEAN = re.compile(
    rb"[\x8a\x8d-\x8f\x9a\x9d-\x9f\xa3\xa5\xb3\xb9\xbc\xbe](?=[a-z\xc0-\xff])"
    rb"|(?<=[a-z\xc0-\xff])[\x9a\x9d-\x9f\xbe\xbf]",
    re.IGNORECASE,
)
_CENTRAL_EUROPEAN_SHARE = 0.08


@dataclass(frozen=True, slots=True)
class Text:
    """A text file's encoding: as people call it, and the codec that also removes its BOM."""

    encoding: str
    codec: str
    sample: str
    whole: bool  # whether the sample is the whole file
    notes: tuple[str, ...]
    has_nul: bool = False


@dataclass(frozen=True, slots=True)
class Flaws:
    """Lines that cannot be text in an encoding: with bytes that it cannot decode, or NULs."""

    first_line: int
    lines: int  # of the whole file
    flawed_lines: int
    has_nul: bool
    has_undecodable: bool
    sound_lines: int  # lines beyond ASCII without flaws; counted up to about a thousand
    sample: bytes  # the text around the first
    is_hopeless: bool = False  # more bytes that are no text than any table has

    def are_too_many(self, options: TableOptions) -> bool:
        allowed = min(options.max_bad_rows, max(1, int(options.max_bad_rows_share * self.lines)))
        return self.is_hopeless or self.flawed_lines > allowed


def _mark_flaw(error: UnicodeError) -> tuple[str, int]:
    """Keeps undecodable bytes as lone surrogates, which no encoding produces by itself."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    flawed = error.object[error.start : error.end]
    return "".join(chr(0xDC00 + byte) for byte in flawed), error.end


_MARK_FLAWS = "holdfast-mark-flaws"
codecs.register_error(_MARK_FLAWS, _mark_flaw)
_UNDECODABLE = re.compile("[\udc00-\udcff]")
_ENOUGH_SOUND_LINES = 1000
_HOPELESS = 16_000_000  # more than the largest row has
_FLAW = re.compile("[\udc00-\udcff\0]")


@cache
def marking_of(codec: str) -> str:
    """Returns the error handler with which files in this encoding are decoded.

    Python's own marks bytes beyond ASCII in the same way, a hundred times as fast; that counts for
    a file of nothing but such bytes. Encodings of several bytes can fail at others, too."""
    found = codecs.lookup(codec)
    plain = found.name in ("utf-8", "utf-8-sig", "ascii") or _has_table(found)
    return "surrogateescape" if plain else _MARK_FLAWS


def _has_table(codec: codecs.CodecInfo) -> bool:
    """Whether it decodes byte by byte, with a table that has all of ASCII."""
    decoder = codec.incrementaldecoder
    if decoder is None or not hasattr(sys.modules[decoder.__module__], "decoding_table"):
        return False
    try:
        return len(codec.decode(bytes(range(128)), "strict")[0]) == 128
    except UnicodeDecodeError:
        return False


def read_head(path: Path) -> bytes:
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InputError(
            f"{path.name} is not a regular file.",
            "Save the content to a file first, because it is read twice.",
        )
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except FileNotFoundError:
        raise InputError(
            f"{path.name} does not exist.", "Check the name and the current folder."
        ) from None
    except IsADirectoryError:
        raise InputError(f"{path.name} is a folder.", "Give a file inside it.") from None
    except OSError as error:
        raise InputError(f"{path.name} cannot be opened: {error.strerror}.") from error
    if not head:
        raise InputError(f"{path.name} is empty.", "The first line must name the columns.")
    return head


def unpacked_head(content: Content) -> bytes:
    """Returns as much of the unpacked bytes as `read_head` reads of a file."""
    blocks: list[bytes] = []
    size = 0
    with content.open() as file:
        while size < HEAD_BYTES and (block := file.read(HEAD_BYTES - size)):
            blocks.append(block)
            size += len(block)
    if not size:
        raise InputError(f"{content.path.name} is empty.", "Its first line must be a row.")
    return b"".join(blocks)


def refuse_foreign(content: Content, head: bytes) -> None:
    for magic, what, hint in _FOREIGN:
        if head.startswith(magic):
            raise InputError(f"{content.path.name} is {what}, not a table.", hint)


def is_zip(head: bytes) -> bool:
    return head.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def find_text(content: Content, head: bytes, options: TableOptions) -> Text:
    """Finds the file's encoding, proved on the whole file: nothing is read of a file of which too
    much would turn out unreadable in its middle."""
    wanted = options.encoding
    encoding, codec, notes = _stated_encoding(head, wanted)
    if not notes:
        _require_mark(content, head, codec)
    is_open = wanted is None and not notes
    # Which encoding it may be instead is decided by all of its lines.
    flaws = find_flaws(content, codec, None if is_open else options.max_bad_rows)
    if flaws and flaws.has_undecodable and is_open and _may_be_other(flaws):
        encoding = codec = _guess_encoding(flaws.sample)
        notes = (f"The encoding looks like {codec}; if letters look wrong, set another encoding.",)
        flaws = find_flaws(content, codec, options.max_bad_rows)
    if flaws and (flaws.are_too_many(options) or (flaws.has_nul and _utf16_hint(head))):
        raise _unreadable(content, head, encoding, flaws)
    whole = len(head) < HEAD_BYTES
    sample = codecs.getincrementaldecoder(codec)(marking_of(codec)).decode(head, final=whole)
    return Text(encoding, codec, sample, whole, notes, flaws is not None and flaws.has_nul)


def _may_be_other(flaws: Flaws) -> bool:
    """Whether another encoding is possible.

    Text in another encoding is hardly ever valid UTF-8: a few bad lines among many good ones are
    bad lines."""
    return flaws.sound_lines < 4 * flaws.flawed_lines


def _stated_encoding(head: bytes, wanted: str | None) -> tuple[str, str, tuple[str, ...]]:
    """Returns what the person or a byte order mark says; UTF-8 if neither does."""
    if wanted is not None:
        _check_known(wanted)
    for bom, codec, encoding in _BOMS:
        if head.startswith(bom) and (wanted is None or _same_encoding(wanted, encoding)):
            return encoding, codec, (f"A byte order mark ({encoding.upper()}) was removed.",)
    return wanted or "utf-8", wanted or "utf-8", ()


def _require_mark(content: Content, head: bytes, codec: str) -> None:
    """Requires a byte order mark: only it says which half of a pair comes first."""
    name = codecs.lookup(codec).name
    if name in ("utf-16", "utf-32"):
        raise InputError(
            f"{content.path.name} is not {name}: it does not begin with a byte order mark.",
            _utf16_hint(head)
            or f"Set the encoding {name}-le or {name}-be if it is, or none to have it detected.",
        )


def _same_encoding(wanted: str, found: str) -> bool:
    """Whether they are the same; utf-16-le names what a UTF-16 mark says, only more exactly."""
    return codecs.lookup(wanted).name.startswith(codecs.lookup(found).name)


def _check_known(wanted: str) -> None:
    if codec_named(wanted) is None:
        raise InputError(
            f"There is no encoding called {wanted!r}.",
            "Common ones: utf-8, utf-16, cp1252 (Western), cp1250 (Central European), cp1251"
            " (Cyrillic), shift_jis, gb18030.",
        )


def find_flaws(content: Content, codec: str, enough: int | None) -> Flaws | None:
    """Searches the file for flaws; with `enough` only until more lines have one, or all hope is
    lost."""
    decoder = codecs.getincrementaldecoder(codec)()
    lines, found = 0, _Found()
    with content.open() as file:
        while True:
            block = file.read(BLOCK_BYTES) or b""
            text, is_sound = _decoded(decoder, block, marking_of(codec))
            if not is_sound and (flaw := _FLAW.search(text)):
                found.add(text, block, lines + _line_ends(text[: flaw.start()]) + 1)
            elif found.sound_lines < _ENOUGH_SOUND_LINES and not text.isascii():
                found.sound_lines += sum(not line.isascii() for line in text.split("\n"))
            lines += _line_ends(text)
            is_decided = enough is not None and (found.flawed_lines > enough or found.is_hopeless)
            if not block or is_decided:
                return found.flaws(lines + 1, is_decided) if found.first_line else None


def _decoded(decoder: codecs.IncrementalDecoder, block: bytes, marking: str) -> tuple[str, bool]:
    """Returns a block's text with its flaws marked, and whether it has none.

    Valid text, which is nearly all, is not searched."""
    try:
        text = decoder.decode(block, final=not block)
    except UnicodeDecodeError:
        decoder.errors = marking
        text = decoder.decode(block, final=not block)
        decoder.errors = "strict"
        return text, False
    return text, "\0" not in text


class _Found:
    """The flaws found so far."""

    def __init__(self) -> None:
        self.first_line = 0
        self.sound_lines = 0
        self.flawed_lines = 0
        self._has_nul = False
        self._has_undecodable = False
        self._sample = b""
        self._undecodable = 0

    @property
    def is_hopeless(self) -> bool:
        return self._undecodable > _HOPELESS

    def add(self, text: str, block: bytes, line: int) -> None:
        if not self.first_line:
            self.first_line = line
        if not self._has_undecodable:
            self._sample = block
        self._has_nul = self._has_nul or "\0" in text
        self._has_undecodable = self._has_undecodable or bool(_UNDECODABLE.search(text))
        self._undecodable += len(text) - len(_UNDECODABLE.sub("", text))
        for each in text.splitlines() if "\n" not in text else text.split("\n"):
            if each.isascii():
                self.flawed_lines += "\0" in each
            elif _FLAW.search(each):
                self.flawed_lines += 1
            else:
                self.sound_lines += 1

    def flaws(self, lines: int, is_decided: bool) -> Flaws:
        return Flaws(
            self.first_line,
            lines,
            self.flawed_lines,
            self._has_nul,
            self._has_undecodable,
            self.sound_lines,
            self._sample,
            is_decided and self.is_hopeless,
        )


def _line_ends(text: str) -> int:
    return text.count("\n") or text.count("\r")


def _guess_encoding(sample: bytes) -> str:
    # Imported only when needed: it is slow to load, and most files are UTF-8.
    from charset_normalizer import from_bytes

    beyond_ascii = [line for line in sample.splitlines() if not line.isascii()]
    telling = b"\n".join(beyond_ascii)[:HEAD_BYTES]
    best = from_bytes(telling, cp_isolation=_LIKELY).best()
    if best is None or best.encoding in ("cp1250", "cp1252"):
        return _western_or_central(telling)
    return best.encoding


def _western_or_central(sample: bytes) -> str:
    """Distinguishes two encodings that share most bytes; short samples of them are taken for each
    other."""
    beyond_ascii = sum(byte > 127 for byte in sample)
    share = len(_CENTRAL_EUROPEAN.findall(sample)) / beyond_ascii
    return "cp1250" if share > _CENTRAL_EUROPEAN_SHARE else "cp1252"


def _unreadable(content: Content, head: bytes, encoding: str, flaws: Flaws) -> InputError:
    name, first = content.path.name, flaws.first_line
    count = f" {flaws.flawed_lines:,} lines are like that." if flaws.flawed_lines > 1 else ""
    if flaws.has_nul and not flaws.has_undecodable:
        return InputError(
            f"{name} has a NUL character in line {first:,}; it is not {encoding} text.{count}",
            _utf16_hint(head) or "Remove the NUL bytes, for example with: tr -d '\\000'.",
        )
    other = "utf-8" if encoding == "cp1252" else "cp1252"
    return InputError(
        f"{name} is not entirely {encoding} text: line {first:,} cannot be decoded.{count}",
        f"Give its real encoding, for example --encoding {other}, or fix the lines.",
    )


def _utf16_hint(head: bytes) -> str | None:
    half = max(1, len(head) // 2)
    if head[1::2].count(0) > half * 0.4:
        return "It looks like UTF-16: set the encoding utf-16-le."
    if head[0::2].count(0) > half * 0.4:
        return "It looks like UTF-16: set the encoding utf-16-be."
    return None


def looks_like_json_lines(content: Content, text: Text) -> bool:
    start = text.sample.lstrip("\ufeff \t\r\n")
    if content.suffix in (".jsonl", ".ndjson", ".json"):
        return True
    if not start.startswith("{"):
        return False
    try:
        return isinstance(orjson.loads(start.split("\n", 1)[0]), dict)
    except orjson.JSONDecodeError:
        return False


def refuse_markup(content: Content, text: Text) -> None:
    start = text.sample.lstrip("\ufeff \t\r\n")[:100].lower()
    if start.startswith(("<!doctype", "<html", "<?xml", "<table")):
        raise InputError(
            f"{content.path.name} is HTML or XML, not a table.",
            "A download that needs a login often saves its login page. Export it as CSV or XLSX.",
        )


_SEPARATOR_LINE = re.compile(r'\ufeff?"?sep=(.)"?\r?(?:\n|$)', re.IGNORECASE)


def separator_line(sample: str) -> str | None:
    """Returns the delimiter that Excel's `sep=;` first line names."""
    match = _SEPARATOR_LINE.match(sample)
    return match[1] if match else None


def find_delimiter(text: Text, wanted: str | None, separator: str | None) -> str:
    if wanted is not None:
        delimiter = DELIMITER_NAMES.get(wanted.lower(), wanted)
        if len(delimiter) != 1 or delimiter in '"\r\n\0':
            raise InputError(f"{wanted!r} cannot be a delimiter.", "Use one character, or `tab`.")
        return delimiter
    if separator:
        return separator
    scores = {each: _consistency(text, each) for each in DELIMITERS}
    return max(DELIMITERS, key=lambda each: scores[each])


def _consistency(text: Text, delimiter: str) -> tuple[float, int]:
    """Returns how many rows have as many cells as the first, in tenths; then how many cells.

    If titles of one cell come first, the most frequent count is used instead of the first."""
    rows = sample_rows(text, delimiter)
    widths = Counter(len(row) for row in rows if any(row))
    width = next((len(row) for row in rows if any(row)), 0)
    if width < 2 and widths:
        width = widths.most_common(1)[0][0]
    if width < 2:
        return 0.0, 0
    return round(widths[width] / widths.total(), 1), width


def sample_rows(text: Text, delimiter: str) -> list[list[str]]:
    """Returns the first rows, without one that the sample cuts off."""
    rows = list(csv.reader(io.StringIO(text.sample, newline=""), delimiter=delimiter))
    if not text.whole and len(rows) > 1:
        rows.pop()
    return rows
