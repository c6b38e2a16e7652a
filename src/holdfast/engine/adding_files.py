"""Rows of a table as records for a standing job: how they are read, in sentences, and renamed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from holdfast.columns import Inputs, mapped_row, names_to_store
from holdfast.tables.files import TableFile
from holdfast.tables.plan import reading_plan

_BATCH_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class FileReading:
    """`chosen`: columns that a person named a field for. With `confirmed`, no other is matched."""

    inputs: Inputs
    table: Mapping[str, Any]
    chosen: Mapping[str, str]
    confirmed: bool = False


class FileRows:
    """The rows of a file, in batches. A column is renamed only where a person chose its field and
    the record would not show that by itself; the rest stays as it came."""

    def __init__(self, file: TableFile, reading: FileReading) -> None:
        self._file = file
        inputs = () if reading.confirmed else reading.inputs
        plan = reading_plan(file.detected, inputs, reading.table, reading.chosen)
        mapping = plan.get("names", {})
        self.read_as: list[str] = plan["read_as"]
        self.bytes_read = 0
        self._names = names_to_store(file.detected.columns, reading.inputs, mapping)

    def batches(self, rows: int) -> Iterator[list[dict[str, Any]]]:
        for batch in self._file.pages(0, lambda: rows, _BATCH_BYTES):
            self.bytes_read += batch.bytes
            yield [self.renamed(orjson.loads(text)) for text in batch.inputs]
            if batch.end:
                return

    def renamed(self, row: dict[str, Any]) -> dict[str, Any]:
        return mapped_row(row, self._names) if self._names else row
