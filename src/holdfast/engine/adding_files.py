"""Rows of a table as records for a standing job: how they are read, in sentences, and renamed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from holdfast.columns import Inputs, chosen_names, with_names
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
    """The rows of a file, in batches, as they came. If a person chose fields for columns, or that a
    column keeps its name, each record says so."""

    def __init__(self, file: TableFile, reading: FileReading) -> None:
        self._file = file
        inputs = () if reading.confirmed else reading.inputs
        plan = reading_plan(file.detected, inputs, reading.table, reading.chosen)
        self.read_as: list[str] = plan["read_as"]
        self.bytes_read = 0
        names = plan.get("names", {})
        self._names = chosen_names(file.detected.columns, reading.inputs, names)

    def batches(self, rows: int) -> Iterator[list[dict[str, Any]]]:
        for batch in self._file.pages(0, lambda: rows, _BATCH_BYTES):
            self.bytes_read += batch.bytes
            yield [with_names(orjson.loads(text), self._names) for text in batch.inputs]
            if batch.end:
                return
