"""The rows of a file, added to a standing job in one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.console.feature_flags import Flag
from holdfast.console.files import StoredFile
from holdfast.console.images import is_archive, is_image
from holdfast.console.new_jobs import FileChoice, NewJobs
from holdfast.console.person import Person
from holdfast.engine.adding import Adding, Records, require_open
from holdfast.engine.adding_files import FileReading, FileRows
from holdfast.errors import UserError
from holdfast.model import Job
from holdfast.store.enqueue import Enqueued
from holdfast.store.idempotency import RequestKey
from holdfast.tables.files import open_table
from holdfast.tables.threads import take_in

_MOST_ROWS = 10_000
_MOST_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class AddedFile:
    enqueued: Enqueued
    read_as: list[str]


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
    ) -> AddedFile:
        """A stored file, or one that is elsewhere, of which only the rows are stored."""
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
    ) -> AddedFile:
        """All rows or none. A large file is a job of its own, which takes it in step by step."""
        reading = FileReading(
            self.adding.inputs(job), choice.table, choice.columns, choice.columns_are_confirmed
        )
        read_as, rows = await take_in(_read, path, reading, self.new_jobs.library.table_limits)
        most_items = self.new_jobs.console.quotas.limits.items
        enqueued = await self.adding.add(job, Records(rows, key), request, most_items)
        return AddedFile(enqueued, read_as)

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
    path: Path, reading: FileReading, limits: Mapping[str, float]
) -> tuple[list[str], list[dict[str, Any]]]:
    with open_table(path, {**reading.table, **limits}) as file:
        rows = FileRows(file, reading)
        records: list[dict[str, Any]] = []
        for batch in rows.batches(_MOST_ROWS + 1):
            records += batch
            if len(records) > _MOST_ROWS or rows.bytes_read > _MOST_BYTES:
                raise UserError(
                    f"{path.name} has more than {_MOST_ROWS:,} rows or {_MOST_BYTES:,} bytes",
                    "Start a job with it, or use `holdfast add`.",
                )
        return rows.read_as, records
