"""New jobs: over a stored file, images, a file on the server or in a bucket, or the pipeline's own
sources; and standing jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from holdfast.columns import column_mapping
from holdfast.console import Console
from holdfast.console.feature_flags import FeatureFlags, Flag
from holdfast.console.file_imports import Received
from holdfast.console.file_library import IMPORT, FileLibrary
from holdfast.console.files import StoredFile
from holdfast.console.images import (
    IMAGE_LIST,
    image_row,
    is_archive,
    is_image,
    job_name,
    listed_files,
)
from holdfast.console.person import Person
from holdfast.engine.control import (
    NO_CAPS,
    Caps,
    Control,
    NewUpload,
    Origin,
    options_of,
    refuse_by_hand,
)
from holdfast.engine.dry_run import dry_run
from holdfast.engine.pace.backpressure import Backpressure
from holdfast.engine.worker import Worker
from holdfast.errors import NotAllowed, NotThere, Throttled, UserError
from holdfast.model import Job, JobState, Outcome
from holdfast.pipeline import Pipeline
from holdfast.store.idempotency import RequestKey

_DRY_RUN_ROWS = 5
_NO_JOB = 0


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A requested job. Without a file, the pipeline discovers its records."""

    pipeline: str
    file_ids: Sequence[int] = ()  # one table, or images
    received: Received | None = None  # a file that came with the request
    path: str | None = None  # of a file on the server
    bucket_key: str | None = None  # in a bucket that is open to the API: BUCKET/KEY
    table: Mapping[str, Any] = field(default_factory=dict)  # how to read the file
    columns: Mapping[str, str] = field(default_factory=dict)  # of the file -> fields
    columns_are_confirmed: bool = False  # otherwise other columns are matched by name
    options: Mapping[str, Any] = field(default_factory=dict)
    caps: Caps = NO_CAPS
    ip: str | None = None
    key: RequestKey | None = None
    take_over: bool = False  # for admins: the checkpoint of another owner's job is lost
    standing: bool = False  # a job that accepts records at any time and does not end

    @property
    def has_input(self) -> bool:
        given = (self.received, self.path, self.bucket_key)
        return bool(self.file_ids) or any(value is not None for value in given)


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
        """Those that a person can start a job of. The others plan their jobs themselves, or take
        records from queues."""
        return [
            pipeline
            for pipeline in self.pipelines.values()
            if not pipeline.plans and not pipeline.fed_by_consumers
        ]

    async def require_capacity(self, person: Person | None) -> None:
        """The one place where new work is refused: while too much is waiting, or if the person
        has too many jobs."""
        if person is not None:
            await self.console.quotas.require(person.name, jobs=1)
        seconds = await self.backpressure.wait_seconds()
        if seconds is not None:
            raise Throttled("too many items are waiting already", seconds, "Try again later.")

    async def start(self, request: JobRequest, person: Person) -> int:
        """Returns the id of the job."""
        pipeline = self.startable_pipeline(request.pipeline)
        control = Control(self.console.store, person.name, self.log)
        if request.take_over and not person.is_admin:
            raise NotAllowed("only an admin may take over another owner's stream")
        if request.standing:
            refuse_in_standing(request)
            origin = self._origin(request, person)
            return (await control.open(pipeline, request.options, origin))[0]
        if not request.has_input:
            return await control.start_discovery(
                pipeline,
                request.options,
                caps=request.caps,
                origin=self._origin(request, person),
            )
        options_of(pipeline, request.options)  # before anything is stored
        async with self.library.drafting() as library:
            file = await self._input_file(library, request, person)
            upload = NewUpload(
                pipeline=pipeline,
                name=job_name(file),
                reference=file.key,
                key=file.sha256,
                table=await self._plan(file, pipeline, request),
                options=request.options,
                caps=request.caps,
                origin=replace(
                    self._origin(request, person),
                    file_id=file.id,
                    drafts=library.drafts or (),
                    files=listed_files(file),
                ),
                images=file.kind == IMAGE_LIST,
            )
            return await control.start_upload(upload)

    def _origin(self, request: JobRequest, person: Person) -> Origin:
        return Origin(
            request.ip,
            None,
            request.key,
            by_admin=person.is_admin,
            take_over=request.take_over,
            quota=self.console.quotas.of_jobs,
        )

    async def standing_job(self, pipeline: str, person: Person) -> int | None:
        """The person's own, if there is one."""
        try:
            return await self.console.store.additions.standing_job(pipeline, person.name)
        except NotThere:
            return None

    async def _plan(
        self, file: StoredFile, pipeline: Pipeline, request: JobRequest
    ) -> dict[str, Any]:
        inputs = () if request.columns_are_confirmed else pipeline.inputs
        return await self.library.plan(file, inputs, request.table, request.columns)

    async def dry_run(
        self, request: JobRequest, person: Person
    ) -> list[tuple[dict[str, Any], Outcome]]:
        """The first rows with their outcomes; nothing is kept."""
        pipeline = self.startable_pipeline(request.pipeline)
        rows, of_images = await self._first_rows(request, person)
        options = options_of(pipeline, request.options)
        options |= {"_images": True} if of_images else {"_table": {"names": dict(request.columns)}}
        job = Job(
            _NO_JOB,
            pipeline.name,
            "dry run",
            JobState.RUNNING,
            owner_id=person.name,
            options=options,
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
        self, library: FileLibrary, request: JobRequest, person: Person
    ) -> StoredFile:
        ids = await self._stored_files(library, request, person)
        return await library.job_input(ids, request.table, person.name, person.scope)

    async def _stored_files(
        self, library: FileLibrary, request: JobRequest, person: Person
    ) -> Sequence[int]:
        """Those that the request names; one that is elsewhere is stored now."""
        await self.flags.require(Flag.INGEST)
        table, name = request.table, person.name
        if request.received is not None:
            return [(await library.store(request.received, table, name))[0].id]
        async with self.fetched(request, name) as received:
            if received is not None:
                return [(await library.store(received, table, name, kind=IMPORT))[0].id]
        return request.file_ids

    @asynccontextmanager
    async def fetched(self, request: JobRequest, owner: str) -> AsyncIterator[Received | None]:
        """A copy of the file that the request names on the server or in a bucket."""
        if request.path is not None:
            async with self.library.fetched_path(request.path) as received:
                yield received
        elif request.bucket_key is not None:
            async with self.library.fetched_object(request.bucket_key, owner) as received:
                yield received
        else:
            yield None

    async def _first_rows(
        self, request: JobRequest, person: Person
    ) -> tuple[list[dict[str, Any]], bool]:
        """And whether they are images."""
        ids = list(request.file_ids)[:_DRY_RUN_ROWS]
        if not ids:
            raise UserError("a dry run needs a file")
        first = await self.console.files.file(ids[0], person.scope)
        if is_image(first):
            return [image_row(file) for file in await self.library.images(ids, person.scope)], True
        preview = await self.library.preview(first, request.table)
        column_mapping(preview.detected.get("columns", ()), (), request.columns)  # refuses twins
        return preview.rows[:_DRY_RUN_ROWS], is_archive(first)


def refuse_in_standing(request: JobRequest) -> None:
    """What would be ignored."""
    if request.has_input:
        raise UserError(
            "a standing job is opened without a file", "Open it first, then add records to it."
        )
    if request.caps != NO_CAPS:
        raise UserError(
            "a standing job does not end, so its items have no maximum", "Leave the maximum out."
        )
