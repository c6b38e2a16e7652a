"""The pages of a municipality as a stream of lines."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Sequence
from enum import StrEnum

import orjson

from holdfast.model import Json
from holdfast.tables.writers import csv_cell
from holdfast_meetings.reads import EXPORT_COLUMNS


class PageFormat(StrEnum):
    JSONL = "jsonl"
    CSV = "csv"


MEDIA_TYPES = {PageFormat.JSONL: "application/x-ndjson", PageFormat.CSV: "text/csv"}


async def lines_of(
    batches: AsyncIterator[Sequence[Json]], format: PageFormat
) -> AsyncIterator[bytes]:
    write = _json_lines if format is PageFormat.JSONL else _csv_lines
    if format is PageFormat.CSV:
        yield _csv_lines([dict(zip(EXPORT_COLUMNS, EXPORT_COLUMNS, strict=True))])
    async for rows in batches:
        yield write(rows)


def _json_lines(rows: Sequence[Json]) -> bytes:
    return b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)


def _csv_lines(rows: Sequence[Json]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerows([csv_cell(row[name]) for name in EXPORT_COLUMNS] for row in rows)
    return text.getvalue().encode("utf-8", "backslashreplace")
