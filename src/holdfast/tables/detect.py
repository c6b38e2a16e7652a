"""Finds out what a file is: its format, its encoding, its delimiter."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import orjson

from holdfast.errors import InputError
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
    (b"\x1f\x8b", "a gzip archive", "Unpack it first: gunzip FILE."),
    (b"\x28\xb5\x2f\xfd", "a zstd archive", "Unpack it first: unzstd FILE."),
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

#: Encodings that tables are really saved in. Guessing among all that exist finds
#: mainframe and DOS code pages in short samples.
_LIKELY = [
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1258"),
    *("cp932", "euc_jp", "gb18030", "big5", "cp949", "koi8_r"),
]
#: Bytes that are letters inside Czech, Polish, Croatian … words and symbols in Western text.
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
    whole: bool  # the sample is the whole file
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Flaw:
    """The first place of a file that cannot be text in an encoding."""

    offset: int
    nul: bool
    plain_before: bool  # everything before it is ASCII, so that it says nothing of the encoding


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


def refuse_foreign(path: Path, head: bytes) -> None:
    for magic, what, hint in _FOREIGN:
        if head.startswith(magic):
            raise InputError(f"{path.name} is {what}, not a table.", hint)


def is_zip(head: bytes) -> bool:
    return head.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def find_text(path: Path, head: bytes, wanted: str | None) -> Text:
    """The file's encoding, proved on the whole file: nothing is read of a file that would
    turn out unreadable in its middle."""
    encoding, codec, notes = _stated_encoding(head, wanted)
    if not notes:
        _require_mark(path, head, codec)
    flaw = first_flaw(path, codec)
    if flaw and flaw.plain_before and not flaw.nul and not notes and wanted is None:
        encoding = codec = _guess_encoding(path, flaw.offset)
        notes = (f"The encoding looks like {codec}; if letters look wrong, set another encoding.",)
        flaw = first_flaw(path, codec)
    if flaw:
        raise _unreadable(path, head, encoding, flaw)
    whole = len(head) < HEAD_BYTES
    sample = codecs.getincrementaldecoder(codec)().decode(head, final=whole)
    return Text(encoding, codec, sample, whole, notes)


def _stated_encoding(head: bytes, wanted: str | None) -> tuple[str, str, tuple[str, ...]]:
    """What the person or a byte order mark says; UTF-8 if neither does."""
    if wanted is not None:
        _check_known(wanted)
    for bom, codec, encoding in _BOMS:
        if head.startswith(bom) and (wanted is None or _same_encoding(wanted, encoding)):
            return encoding, codec, (f"A byte order mark ({encoding.upper()}) was removed.",)
    return wanted or "utf-8", wanted or "utf-8", ()


def _require_mark(path: Path, head: bytes, codec: str) -> None:
    """Which half of a pair comes first, only the mark says."""
    name = codecs.lookup(codec).name
    if name in ("utf-16", "utf-32"):
        raise InputError(
            f"{path.name} is not {name}: it does not begin with a byte order mark.",
            _utf16_hint(head)
            or f"Set the encoding {name}-le or {name}-be if it is, or none to have it detected.",
        )


def _same_encoding(wanted: str, found: str) -> bool:
    """utf-16-le names what a UTF-16 mark says, only more exactly."""
    return codecs.lookup(wanted).name.startswith(codecs.lookup(found).name)


def _check_known(wanted: str) -> None:
    if codec_named(wanted) is None:
        raise InputError(
            f"There is no encoding called {wanted!r}.",
            "Common ones: utf-8, utf-16, cp1252 (Western), cp1250 (Central European), cp1251"
            " (Cyrillic), shift_jis, gb18030.",
        )


def first_flaw(path: Path, codec: str) -> Flaw | None:
    decoder = codecs.getincrementaldecoder(codec)()
    offset, plain = 0, True
    with path.open("rb", buffering=0) as file:
        while True:
            block = file.read(BLOCK_BYTES)
            held_back = len(decoder.getstate()[0])
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                plain = plain and error.object[: error.start].isascii()
                return Flaw(offset - held_back + error.start, nul=False, plain_before=plain)
            if "\0" in text:
                before = text[: text.index("\0")].encode(codec)
                return Flaw(offset - held_back + len(before), nul=True, plain_before=plain)
            if not block:
                return None
            offset += len(block)
            plain = plain and text.isascii()


def _line_at(path: Path, codec: str, offset: int) -> int:
    decoder = codecs.getincrementaldecoder(codec)("ignore")
    line = 1
    with path.open("rb", buffering=0) as file:
        while offset > 0 and (block := file.read(min(offset, BLOCK_BYTES))):
            offset -= len(block)
            line += decoder.decode(block).count("\n")
    return line


def _guess_encoding(path: Path, offset: int) -> str:
    # Imported only when needed: it is slow to load, and most files are UTF-8.
    from charset_normalizer import from_bytes

    with path.open("rb") as file:
        file.seek(max(0, offset - HEAD_BYTES // 8))
        sample = file.read(HEAD_BYTES)
    telling = b"\n".join(line for line in sample.splitlines() if not line.isascii())
    best = from_bytes(telling, cp_isolation=_LIKELY).best()
    if best is None or best.encoding in ("cp1250", "cp1252"):
        return _western_or_central(telling)
    return best.encoding


def _western_or_central(sample: bytes) -> str:
    """The two share most bytes, and short samples of them are taken for each other."""
    beyond_ascii = sum(byte > 127 for byte in sample)
    share = len(_CENTRAL_EUROPEAN.findall(sample)) / beyond_ascii
    return "cp1250" if share > _CENTRAL_EUROPEAN_SHARE else "cp1252"


def _unreadable(path: Path, head: bytes, encoding: str, flaw: Flaw) -> InputError:
    line = _line_at(path, encoding, flaw.offset)
    if flaw.nul:
        return InputError(
            f"{path.name} has a NUL character in line {line:,}; it is not {encoding} text.",
            _utf16_hint(head) or "Remove the NUL bytes, for example with: tr -d '\\000'.",
        )
    return InputError(
        f"{path.name} is not entirely {encoding} text: line {line:,} cannot be decoded (byte"
        f" {flaw.offset:,} of the file).",
        "Set its real encoding, for example cp1252, or fix that line.",
    )


def _utf16_hint(head: bytes) -> str | None:
    half = max(1, len(head) // 2)
    if head[1::2].count(0) > half * 0.4:
        return "It looks like UTF-16: set the encoding utf-16-le."
    if head[0::2].count(0) > half * 0.4:
        return "It looks like UTF-16: set the encoding utf-16-be."
    return None


def looks_like_json_lines(path: Path, text: Text) -> bool:
    start = text.sample.lstrip("\ufeff \t\r\n")
    if path.suffix.lower() in (".jsonl", ".ndjson", ".json"):
        return True
    if not start.startswith("{"):
        return False
    try:
        return isinstance(orjson.loads(start.split("\n", 1)[0]), dict)
    except orjson.JSONDecodeError:
        return False


def refuse_markup(path: Path, text: Text) -> None:
    start = text.sample.lstrip("\ufeff \t\r\n")[:100].lower()
    if start.startswith(("<!doctype", "<html", "<?xml", "<table")):
        raise InputError(
            f"{path.name} is HTML or XML, not a table.",
            "A download that needs a login often saves its login page. Export it as CSV or XLSX.",
        )


_SEPARATOR_LINE = re.compile(r'\ufeff?"?sep=(.)"?\r?(?:\n|$)', re.IGNORECASE)


def separator_line(sample: str) -> str | None:
    """The delimiter that Excel's `sep=;` first line names."""
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
    """How many rows have as many cells as the header, in tenths; then how many cells."""
    rows = list(csv.reader(io.StringIO(text.sample, newline=""), delimiter=delimiter))
    if not text.whole and len(rows) > 1:
        rows.pop()
    widths = Counter(len(row) for row in rows if any(row))
    width = next((len(row) for row in rows if any(row)), 0)
    if width < 2:
        return 0.0, 0
    return round(widths[width] / widths.total(), 1), width
