"""What people may do to jobs: start, pause, resume, cancel, reprocess, switch off."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from holdfast.errors import (
    HoldfastError,
    PipelineError,
    StreamOwned,
    SwitchedOff,
    Throttled,
    UnfitState,
    UserError,
)
from holdfast.kernel import Carried, NewJob, NewStream, Store
from holdfast.kernel.arrivals.idempotency import RequestKey
from holdfast.kernel.database.chunks import FinishedItems, NamedItems
from holdfast.kernel.jobs.admission import NO_QUOTA, Quota
from holdfast.kernel.jobs.planning import PipelinePlanner
from holdfast.model import FINAL, ItemStatus, Job, JobState, Lane
from holdfast.observe.tracing import note, span
from holdfast.options import checked_options, filled_options, whole_options
from holdfast.orders import Planned
from holdfast.pipeline import Pipeline, Tx
from holdfast.reading import Reading

_LONGEST_ERROR = 1000


@dataclass(frozen=True, slots=True)
class JobFile:
    """The file whose rows become a job's items.

    It must stay where it is until all rows are ingested; with `images`, its rows name stored
    images, which must stay for good."""

    name: str
    reference: str  # the key of a stored file, or the path of a file that the command reads
    key: str  # the key of its content
    table: Mapping[str, Any] = field(default_factory=dict)  # how it is read
    images: bool = False
    file_id: int | None = None  # of a stored file
    files: Sequence[int] = ()  # stored files that its rows refer to
    drafts: Sequence[int] = ()  # files that came with the request; kept only if the job is created


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A request for a job: over a file, over the records that the pipeline finds, or `standing`.

    An admin sees whose stream it would take over, and may ask for that."""

    pipeline: Pipeline
    options: Mapping[str, Any] = field(default_factory=dict)
    file: JobFile | None = None
    standing: bool = False  # accepts records at any time and does not end
    max_items: int | None = None
    max_per_source: int | None = None
    owner: str | None = None  # None: the person who starts it
    take_over: bool = False  # the checkpoint of another owner's job is lost
    by_admin: bool = False
    quota: Quota = NO_QUOTA
    ip: str | None = None
    key: RequestKey | None = None  # of the HTTP request


class Control:
    def __init__(self, store: Store, owner: str, log: Any) -> None:
        self._store = store
        self._owner = owner
        self._log = log

    async def start(self, request: JobRequest, only_first: bool = False) -> int:
        """Starts a job; with `only_first`, returns an earlier job on the same input instead."""
        if request.standing:
            return (await self.open(request))[0]
        return await self._create(await self.new_job(request), request.by_admin, only_first)

    async def open(self, request: JobRequest) -> tuple[int, bool]:
        """Returns the standing job of the pipeline and owner, and whether it was created now."""
        refuse_consumed(request.pipeline)
        new = self.standing_job(request)
        await self.prepare(request.pipeline)
        with _names_owner(request.by_admin), span("job.open", pipeline=new.pipeline) as trace:
            job_id, is_new = await self._store.jobs.open(replace(new, trace=trace), self._owner)
        if is_new:
            self._log.info("job.opened", job_id=job_id, pipeline=new.pipeline, by=self._owner)
        elif request.options:
            job = await self._store.reads.job(job_id)
            _require_same_options(job, request.pipeline, request.options)
        return job_id, is_new

    async def new_job(self, request: JobRequest) -> NewJob:
        """Returns the job over a file's rows or over what the pipeline discovers, to be created in
        the caller's transaction."""
        pipeline = request.pipeline
        refuse_by_hand(pipeline)
        if request.file is None and not pipeline.discovers:
            raise UserError(
                f"the pipeline {pipeline.name} does not find its own records",
                "Give it a file: holdfast run PIPELINE.py INPUT, or fileId in POST /api/jobs.",
            )
        options = options_of(pipeline, request.options)
        await self.prepare(pipeline)
        new = self._asked(request, options)
        new = replace(new, max_items=request.max_items, most_items=request.quota.items)
        if request.file is None:
            return _over_streams(new, request, options)
        return _over_file(new, request.file, request.max_per_source)

    def standing_job(self, request: JobRequest) -> NewJob:
        """Returns what `open` creates if there is none.

        For one of its topics, change topic and name."""
        pipeline = request.pipeline
        refuse_planning(pipeline)
        options = options_of(pipeline, request.options)
        new = self._asked(request, options)
        queries = _queries(pipeline, options) if pipeline.discovers else []
        reading = replace(
            new.reading,
            dedupe=pipeline.dedupe,
            inputs=pipeline.inputs,
            fed_by_consumers=pipeline.fed_by_consumers,
        )
        return replace(
            new,
            reading=reading,
            streams=[NewStream(source, fingerprint) for source, fingerprint in queries],
            lane=Lane.EVENT if pipeline.lane is Lane.UPLOAD else pipeline.lane,
            standing=True,
        )

    def _asked(self, request: JobRequest, options: Mapping[str, Any]) -> NewJob:
        """Returns what all jobs have in common."""
        pipeline = request.pipeline
        return NewJob(
            pipeline=pipeline.name,
            name=pipeline.name,
            streams=(),
            owner_id=request.owner or self._owner,
            columns=pipeline.columns,
            options=options,
            reading=Reading(pipeline_file=pipeline.file),
            ip=request.ip,
            request=request.key,
            takes_over=request.take_over and request.by_admin,
            enabled_by=pipeline.enabled_by,
            most_open=request.quota.jobs,
        )

    async def open_declared(self, pipelines: Iterable[Pipeline]) -> None:
        """Opens the standing jobs that pipelines declare; one that cannot be opened now is
        logged."""
        for pipeline in pipelines:
            if pipeline.standing:
                try:
                    await self.open(JobRequest(pipeline, by_admin=True))
                except (SwitchedOff, Throttled) as error:
                    self._log.error("upkeep.failed", task="open", error=error.message)

    async def force_full(self, request: JobRequest, job: Job, source: str) -> list[int]:
        """Reads one stream of a job again from its beginning; returns the jobs that do it.

        There are none yet if the pipeline waits for the job that reads the stream now."""
        pipeline = request.pipeline
        if job.reference is not None:
            raise UnfitState(
                f"{source} is a file: its rows are ingested once", "Start a new job with the file."
            )
        if pipeline.plans:
            forced = {"force_full": source}
            key, quota = request.key, request.quota
            return (await self.request(pipeline, forced, key=key, quota=quota)).job_ids
        whole = await self.new_job(replace(request, options=job.options))
        streams = [stream for stream in whole.streams if stream.source == source]
        if not streams:
            raise UnfitState(
                f"the pipeline {pipeline.name} no longer has the source {source}",
                "Start a job with the sources that it has.",
            )
        new = replace(whole, streams=streams, name=f"{pipeline.name} {source}", input_key=None)
        return [await self._create(new, request.by_admin)]

    async def request(
        self,
        pipeline: Pipeline,
        request: Mapping[str, Any],
        actor: str | None = None,
        key: RequestKey | None = None,
        quota: Quota = NO_QUOTA,
    ) -> Carried:
        """Asks a pipeline that plans what to do, and carries it out."""
        await self.prepare(pipeline)
        planner = PipelinePlanner(pipeline, self._owner, actor or self._owner, quota)
        try:
            carried = await self._store.plans.plan(planner, request, key)
        except HoldfastError:
            raise
        except Exception as error:
            detail = f"{type(error).__name__}: {error}"[:_LONGEST_ERROR]
            raise PipelineError(
                f"`plan` of the pipeline {pipeline.name} failed: {detail}", "Fix it."
            ) from error
        self.log_ordered(planner, carried.job_ids)
        return carried

    async def change(self, change: Callable[[Tx], Awaitable[Planned]]) -> Any:
        """Changes an extension's own rows in one transaction, with its entries in the audit log;
        returns the answer. Orders are for `request`. Extensions do not reach the store."""
        return await self._store.plans.change(self._owner, change)

    async def planner(self, pipeline: Pipeline, actor: str) -> PipelinePlanner:
        """Returns what lets the pipeline plan on behalf of `actor`, ready to be asked."""
        await self.prepare(pipeline)
        return PipelinePlanner(pipeline, self._owner, actor)

    def log_ordered(self, planner: PipelinePlanner, job_ids: Sequence[int]) -> None:
        name = planner.pipeline.name
        for job_id in job_ids:
            self._log.info("job.ordered", job_id=job_id, pipeline=name, by=planner.actor)

    async def pause(self, job_id: int) -> JobState:
        state = await self._store.jobs.pause(job_id, self._owner)
        self._log.info("job.paused", job_id=job_id, by=self._owner)
        return state

    async def resume(
        self,
        job_id: int,
        max_items: int | None = None,
        max_per_source: int | None = None,
        quota: Quota = NO_QUOTA,
    ) -> JobState:
        jobs = self._store.jobs
        state = await jobs.resume(job_id, self._owner, max_items, max_per_source, quota)
        self._log.info("job.resumed", job_id=job_id, by=self._owner)
        return state

    async def cancel(self, job_id: int) -> JobState:
        state = await self._store.jobs.cancel(job_id, self._owner)
        self._log.info("job.cancelled", job_id=job_id, by=self._owner)
        return state

    async def reprocess(
        self, job_id: int, statuses: Sequence[ItemStatus], reset_attempts: bool = True
    ) -> int:
        """Opens all items that ended with one of the statuses again; returns how many."""
        unfinished = [status for status in statuses if status not in FINAL]
        if unfinished:
            raise UserError(
                f"{unfinished[0]} items are still open", f"Choose among {', '.join(sorted(FINAL))}."
            )
        jobs = self._store.jobs
        now, total = await jobs.now(), 0
        for status in statuses:
            chunk: FinishedItems | None = FinishedItems(status, until=now)
            while chunk is not None:
                step = await jobs.reprocess(job_id, chunk, self._owner, reset_attempts)
                total, chunk = total + step.opened, step.next
        self._log.info("job.reprocessed", job_id=job_id, items=total, by=self._owner)
        return total

    async def reprocess_items(
        self, job_id: int, seqs: Sequence[int], reset_attempts: bool = True
    ) -> int:
        """Opens the items that are finished; it is an error if none is."""
        named = NamedItems(seqs)
        step = await self._store.jobs.reprocess(job_id, named, self._owner, reset_attempts)
        if not step.opened:
            name = f"item {seqs[0]}" if len(seqs) == 1 else f"these {len(seqs)} items"
            raise UnfitState(
                f"{name} of job {job_id}: still open, or does not exist",
                "Only finished items can be reprocessed; see `holdfast items`.",
            )
        return step.opened

    async def skip_items(self, job_id: int, seqs: Sequence[int], reason: str = "") -> int:
        """Skips the items that are open and not being processed; returns how many."""
        message = reason or f"skipped by {self._owner}"
        step = await self._store.jobs.skip(job_id, NamedItems(seqs), self._owner, message)
        await self._store.outcomes.complete(job_id)
        self._log.info("job.items_skipped", job_id=job_id, items=step.skipped, by=self._owner)
        return step.skipped

    async def switch(self, scope: str, on: bool, reason: str) -> bool:
        changed = await self._store.jobs.switch(scope, on, self._owner, reason)
        if on:
            self._log.info("kill_switch.on", scope=scope, by=self._owner)
        else:
            self._log.info("kill_switch.off", scope=scope, by=self._owner)
        return changed

    async def _create(self, job: NewJob, by_admin: bool, only_first: bool = False) -> int:
        with _names_owner(by_admin), span("job.create", pipeline=job.pipeline) as trace:
            job = replace(job, trace=trace)
            job_id = await self._store.jobs.create(job, self._owner, only_first)
            note(job_id=job_id)
            self._log.info("job.created", job_id=job_id, pipeline=job.pipeline, name=job.name)
        return job_id

    async def prepare(self, pipeline: Pipeline) -> None:
        """Creates the pipeline's own tables and declares its gates."""
        if pipeline.schema:
            await self._store.jobs.prepare(pipeline.schema)
        for gate in pipeline.gates:
            await self._store.gates.declare(gate)


@contextmanager
def _names_owner(by_admin: bool) -> Iterator[None]:
    """Hides whose checkpoint a job would discard from anyone but admins."""
    try:
        yield
    except StreamOwned as owned:
        raise (owned.named if by_admin else owned) from None


def _over_file(new: NewJob, file: JobFile, max_per_source: int | None) -> NewJob:
    return replace(
        new,
        name=file.name,
        streams=[NewStream("upload-{job}", file.key, max_per_source)],
        lane=Lane.UPLOAD,
        reference=file.reference,
        input_key=file.key,
        reading=replace(new.reading, table=dict(file.table), images=file.images),
        file_id=file.file_id,
        files=file.files,
        drafts=file.drafts,
    )


def _over_streams(new: NewJob, request: JobRequest, options: Mapping[str, Any]) -> NewJob:
    """Returns a job whose records the pipeline discovers."""
    pipeline, cap = request.pipeline, request.max_per_source
    queries = _queries(pipeline, options)
    return replace(
        new,
        streams=[NewStream(source, fingerprint, cap) for source, fingerprint in queries],
        lane=Lane.BACKFILL if pipeline.lane is Lane.UPLOAD else pipeline.lane,
        input_key=_key_of(queries),
        concludes=pipeline.concludes,
    )


def refuse_by_hand(pipeline: Pipeline) -> None:
    """Refuses jobs that cannot be started by hand; called by every way of starting one."""
    refuse_planning(pipeline)
    refuse_consumed(pipeline)


def refuse_planning(pipeline: Pipeline) -> None:
    """Refuses jobs whose options only the pipeline's plan decides."""
    if pipeline.plans:
        raise UserError(
            f"jobs of the pipeline {pipeline.name} are started by its plan only",
            "Use its own pages and routes, a schedule, or `holdfast run`.",
        )


def refuse_consumed(pipeline: Pipeline) -> None:
    """Refuses records from users, which could refer to rows that belong to other people."""
    if pipeline.fed_by_consumers:
        raise UserError(
            f"the pipeline {pipeline.name} takes records only from the queues that it reads",
            "Publish a message to one of them.",
        )


def _require_same_options(job: Job, pipeline: Pipeline, wanted: Mapping[str, Any]) -> None:
    """Refuses different options for an existing job, which would be ignored silently.

    Options that are not given are not compared: the pipeline may have gained some since."""
    kept = filled_options(pipeline.options, job.options)
    checked = checked_options(pipeline.name, pipeline.options, wanted)
    if not checked.items() <= kept.items():
        raise UnfitState(
            f"job {job.id}, the standing job of {job.pipeline}, was opened with different options",
            "Leave them out to use it, or cancel it first.",
        )


def discovery_key(pipeline: Pipeline, options: Mapping[str, Any]) -> str:
    """Identifies a discovery job by the queries behind its sources."""
    return _key_of(_queries(pipeline, options_of(pipeline, options)))


def _key_of(queries: Iterable[tuple[str, str]]) -> str:
    return "discover:" + ";".join(f"{s}={f}" for s, f in queries)


def options_of(pipeline: Pipeline, given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a job's options: the given ones, checked, and the pipeline's defaults."""
    return whole_options(pipeline.name, pipeline.options, given)


def _queries(pipeline: Pipeline, options: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Returns the pipeline's sources and their fingerprints; its code may fail for these
    options."""
    try:
        queries = [(s, pipeline.fingerprint(s, options)) for s in pipeline.sources(options)]
        for text in chain.from_iterable(queries):
            if not isinstance(text, str) or "\0" in text:
                raise TypeError(f"a source or its fingerprint is {text!r}, not text")
        return queries
    except UserError:
        raise
    except KeyError as error:
        if error.args and error.args[0] not in options:
            raise UserError(
                f"the pipeline {pipeline.name} needs the option {error.args[0]}",
                "Give it with the options of the job.",
            ) from error
        raise _no_sources(pipeline, error) from error
    except Exception as error:
        raise _no_sources(pipeline, error) from error


def _no_sources(pipeline: Pipeline, error: Exception) -> PipelineError:
    return PipelineError(
        f"the pipeline {pipeline.name} has no sources for these options: "
        f"{type(error).__name__}: {error}",
        "Give the options that its `sources` needs, or fix it.",
    )
