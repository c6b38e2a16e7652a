"""New jobs: over a stored file, images, a file on the server or in a bucket, or the pipeline's own
sources; and standing jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import orjson

from holdfast.columns import column_mapping
from holdfast.errors import NotAllowed, NotThere, Throttled, UserError
from holdfast.features.accounts.person import Person
from holdfast.features.library.file_imports import Received
from holdfast.features.library.file_library import IMPORT, FileLibrary
from holdfast.features.library.files import StoredFile
from holdfast.features.library.images import (
    IMAGE_LIST,
    image_row,
    is_archive,
    is_image,
    job_name,
    listed_files,
)
from holdfast.features.switches.flags import FeatureFlags, Flag
from holdfast.kernel.jobs.control import (
    Control,
    JobFile,
    options_of,
    refuse_by_hand,
)
from holdfast.kernel.jobs.control import (
    JobRequest as JobRequest,
)
from holdfast.kernel.pace.backpressure import Backpressure
from holdfast.kernel.worker.dry_run import dry_run
from holdfast.kernel.worker.worker import Worker
from holdfast.model import Job, JobState, Outcome
from holdfast.pipeline import Pipeline
from holdfast.reading import Reading

if TYPE_CHECKING:
    from holdfast.features.console import Console

_DRY_RUN_ROWS = 5
_NO_JOB = 0


@dataclass(frozen=True, slots=True)
class FileChoice:
    """Which file a request names, and how it is read."""

    file_ids: Sequence[int] = ()  # one table, or images
    received: Received | None = None  # a file that came with the request
    path: str | None = None  # a path on the server
    bucket_key: str | None = None  # in a bucket that is open to the API: BUCKET/KEY
    table: Mapping[str, Any] = field(default_factory=dict)  # how to read the file
    columns: Mapping[str, str] = field(default_factory=dict)  # columns of the file -> fields
    columns_are_confirmed: bool = False  # otherwise other columns are matched by name

    @property
    def is_given(self) -> bool:
        given = (self.received, self.path, self.bucket_key)
        return bool(self.file_ids) or any(value is not None for value in given)


NO_FILE = FileChoice()


@dataclass(frozen=True, slots=True)
class NewJobs:
    console: Console
    pipelines: Mapping[str, Pipeline]
    library: FileLibrary
    flags: FeatureFlags
    backpressure: Backpressure
    new_worker: Callable[[int], Worker]
    log: Any

    def pipeline(self, name: str) -> Pipeline:
        if name not in self.pipelines:
            known = ", ".join(sorted(self.pipelines)) or "none; start the server with PIPELINE.py"
            raise UserError(f"there is no pipeline {name!r}", f"Pipelines: {known}.")
        return self.pipelines[name]

    @property
    def startable(self) -> list[Pipeline]:
        """The pipelines of which a person can start a job.

        The others plan their jobs themselves, or take records from queues."""
        return [
            pipeline
            for pipeline in self.pipelines.values()
            if not pipeline.plans and not pipeline.fed_by_consumers
        ]

    async def require_capacity(self, person: Person | None) -> None:
        """Refuses new work while too much is waiting, or if the person has too many jobs.

        No other place does."""
        if person is not None:
            await self.console.quotas.require(person.name, jobs=1)
        seconds = await self.backpressure.wait_seconds()
        if seconds is not None:
            raise Throttled("too many items are waiting already", seconds, "Try again later.")

    async def start(self, request: JobRequest, person: Person, choice: FileChoice = NO_FILE) -> int:
        """Starts a job; returns its id. Without a file, its pipeline discovers its records."""
        refuse_by_hand(request.pipeline)
        control = Control(self.console.store, person.name, self.log)
        if request.take_over and not person.is_admin:
            raise NotAllowed("only an admin may take over another owner's stream")
        quota = self.console.quotas.of_jobs
        request = replace(request, by_admin=person.is_admin, quota=quota)
        if request.standing:
            refuse_in_standing(request, choice)
        if not choice.is_given:
            return await control.start(request)
        options_of(request.pipeline, request.options)  # before anything is stored
        async with self.library.drafting() as library:
            file = await self._input_file(library, choice, person)
            table = await self._plan(file, request.pipeline, choice)
            over = job_file(file, table, library.drafts or ())
            return await control.start(replace(request, file=over))

    async def standing_job(self, pipeline: str, person: Person) -> int | None:
        """Returns the person's own standing job, if there is one."""
        try:
            return await self.console.store.additions.standing_job(pipeline, person.name)
        except NotThere:
            return None

    async def _plan(
        self, file: StoredFile, pipeline: Pipeline, choice: FileChoice
    ) -> dict[str, Any]:
        inputs = () if choice.columns_are_confirmed else pipeline.inputs
        return await self.library.plan(file, inputs, choice.table, choice.columns)

    async def dry_run(
        self, request: JobRequest, person: Person, choice: FileChoice
    ) -> list[tuple[dict[str, Any], Outcome]]:
        """Returns the first rows with their outcomes; nothing is stored."""
        pipeline = request.pipeline
        refuse_by_hand(pipeline)
        rows, of_images = await self._first_rows(choice, person)
        table = None if of_images else {"names": dict(choice.columns)}
        job = Job(
            _NO_JOB,
            pipeline.name,
            "dry run",
            JobState.RUNNING,
            owner_id=person.name,
            options=options_of(pipeline, request.options),
            reading=Reading(table=table, images=of_images),
        )
        await Control(self.console.store, person.name, self.log).prepare(pipeline)
        texts = [orjson.dumps(row).decode() for row in rows]
        worker = self.new_worker(_NO_JOB)
        outcomes = await dry_run(self.console.store, worker, pipeline, job, texts)
        return list(zip(rows, outcomes, strict=True))

    def startable_pipeline(self, name: str) -> Pipeline:
        pipeline = self.pipeline(name)
        refuse_by_hand(pipeline)
        return pipeline

    async def _input_file(
        self, library: FileLibrary, choice: FileChoice, person: Person
    ) -> StoredFile:
        ids = await self._stored_files(library, choice, person)
        return await library.job_input(ids, choice.table, person.name, person.scope)

    async def _stored_files(
        self, library: FileLibrary, choice: FileChoice, person: Person
    ) -> Sequence[int]:
        """Returns the stored files that a request names; one that is elsewhere is stored now."""
        await self.flags.require(Flag.INGEST)
        table, name = choice.table, person.name
        if choice.received is not None:
            return [(await library.store(choice.received, table, name))[0].id]
        async with self.fetched(choice, name) as received:
            if received is not None:
                return [(await library.store(received, table, name, kind=IMPORT))[0].id]
        return choice.file_ids

    @asynccontextmanager
    async def fetched(self, choice: FileChoice, owner: str) -> AsyncIterator[Received | None]:
        """Provides a copy of the file that a request names on the server or in a bucket."""
        if choice.path is not None:
            async with self.library.fetched_path(choice.path) as received:
                yield received
        elif choice.bucket_key is not None:
            async with self.library.fetched_object(choice.bucket_key, owner) as received:
                yield received
        else:
            yield None

    async def _first_rows(
        self, choice: FileChoice, person: Person
    ) -> tuple[list[dict[str, Any]], bool]:
        """Returns the first rows, and whether they are images."""
        ids = list(choice.file_ids)[:_DRY_RUN_ROWS]
        if not ids:
            raise UserError("a dry run needs a file")
        first = await self.console.files.file(ids[0], person.scope)
        if is_image(first):
            return [image_row(file) for file in await self.library.images(ids, person.scope)], True
        preview = await self.library.preview(first, choice.table)
        column_mapping(preview.detected.get("columns", ()), (), choice.columns)  # refuses twins
        return preview.rows[:_DRY_RUN_ROWS], is_archive(first)


def job_file(file: StoredFile, table: Mapping[str, Any], drafts: Sequence[int] = ()) -> JobFile:
    """Returns a stored file as the input of a job."""
    return JobFile(
        job_name(file),
        file.key,
        file.sha256,
        table,
        images=file.kind == IMAGE_LIST,
        file_id=file.id,
        files=listed_files(file),
        drafts=drafts,
    )


def refuse_in_standing(request: JobRequest, choice: FileChoice) -> None:
    """Refuses options that a standing job would ignore."""
    if choice.is_given:
        raise UserError(
            "a standing job is opened without a file", "Open it first, then add records to it."
        )
    if request.max_items is not None or request.max_per_source is not None:
        raise UserError(
            "a standing job does not end, so its items have no maximum", "Leave the maximum out."
        )
