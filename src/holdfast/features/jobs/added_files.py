"""Reads the rows of a file as records for a standing job.

Over HTTP they are added in one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from holdfast.columns import Inputs, chosen_names, with_names
from holdfast.errors import UserError
from holdfast.features.accounts.person import Person
from holdfast.features.jobs.new_jobs import FileChoice, NewJobs
from holdfast.features.library.files import StoredFile
from holdfast.features.library.images import is_archive, is_image
from holdfast.features.switches.flags import Flag
from holdfast.kernel.arrivals.adding import Adding, require_open
from holdfast.kernel.arrivals.idempotency import RequestKey
from holdfast.model import Job
from holdfast.tables.files import TableFile, open_table
from holdfast.tables.plan import reading_plan
from holdfast.tables.threads import take_in
from holdfast_client.adding import Enqueued

_MOST_ROWS = 10_000
_MOST_BYTES = 64 * 1024 * 1024
_BATCH_BYTES = 4 * 1024 * 1024


class FileRows:
    """The rows of a file, in batches, as they were read.

    If a person chose fields for columns, or that a column keeps its name, each record says so. With
    `confirmed`, no other column is matched."""

    def __init__(
        self,
        file: TableFile,
        inputs: Inputs,
        table: Mapping[str, Any],
        chosen: Mapping[str, str],
        confirmed: bool = False,
    ) -> None:
        self._file = file
        plan = reading_plan(file.detected, () if confirmed else inputs, table, chosen)
        self.read_as: list[str] = plan["read_as"]
        self.bytes_read = 0
        self._names = chosen_names(file.detected.columns, inputs, plan.get("names", {}))

    def batches(self, rows: int) -> Iterator[list[dict[str, Any]]]:
        for batch in self._file.pages(0, lambda: rows, _BATCH_BYTES):
            self.bytes_read += batch.bytes
            yield [with_names(orjson.loads(text), self._names) for text in batch.inputs]
            if batch.end:
                return


@dataclass(frozen=True, slots=True)
class AddedFiles:
    new_jobs: NewJobs
    adding: Adding

    async def add_stored(
        self,
        job: Job,
        choice: FileChoice,
        person: Person,
        key: str | None = None,
        request: RequestKey | None = None,
    ) -> tuple[Enqueued, list[str]]:
        """Adds the rows of a stored file, or of one elsewhere, of which only the rows are stored.

        Also returns how it was read, in sentences."""
        require_open(job)
        await self.new_jobs.flags.require(Flag.INGEST)
        async with self.new_jobs.fetched(choice, person.name) as received:
            if received is not None:
                return await self.add(job, received.under_its_name().path, choice, key, request)
        file = await self._table(choice, person)
        async with self.new_jobs.library.opened(file) as path:
            return await self.add(job, path, choice, key, request)

    async def add(
        self,
        job: Job,
        path: Path,
        choice: FileChoice,
        key: str | None,
        request: RequestKey | None,
    ) -> tuple[Enqueued, list[str]]:
        """Adds all rows or none. A large file needs its own job, which reads it step by step."""
        inputs, limits = self.adding.inputs(job), self.new_jobs.library.table_limits
        read_as, rows = await take_in(_read, path, inputs, choice, limits)
        most_items = self.new_jobs.console.quotas.limits.items
        addition = self.adding.addition(job, rows, key)
        enqueued = await self.adding.add(addition, request, most_items)
        return enqueued, read_as

    async def _table(self, choice: FileChoice, person: Person) -> StoredFile:
        if len(choice.file_ids) != 1:
            raise UserError("the request names no file", "Give fileId, path or bucketKey.")
        file = await self.new_jobs.console.files.file(choice.file_ids[0], person.scope)
        if is_image(file) or is_archive(file):
            raise UserError(
                f"{file.name} is not a table, and a standing job takes no images",
                "Start a job with it.",
            )
        return file


def _read(
    path: Path, inputs: Inputs, choice: FileChoice, limits: Mapping[str, float]
) -> tuple[list[str], list[dict[str, Any]]]:
    table, confirmed = choice.table, choice.columns_are_confirmed
    with open_table(path, {**table, **limits}) as file:
        rows = FileRows(file, inputs, table, choice.columns, confirmed)
        records: list[dict[str, Any]] = []
        for batch in rows.batches(_MOST_ROWS + 1):
            records += batch
            if len(records) > _MOST_ROWS or rows.bytes_read > _MOST_BYTES:
                raise UserError(
                    f"{path.name} has more than {_MOST_ROWS:,} rows or {_MOST_BYTES:,} bytes",
                    "Start a job with it, or use `holdfast add`.",
                )
        return rows.read_as, records
