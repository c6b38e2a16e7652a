"""The pipeline class, which puts the parts together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import date, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from holdfast.clock import Clock, SystemClock
from holdfast.errors import GateWait
from holdfast.model import Job, Json, Lane, NothingYet, Page, Schedule
from holdfast.orders import Planned
from holdfast.pipeline import (
    Backoff,
    Context,
    Dedupe,
    Done,
    Fetch,
    ItemEvidence,
    Pipeline,
    Settled,
    StreamStatuses,
    Tx,
)
from holdfast_regulations import planning, saving
from holdfast_regulations.dates import DateRange
from holdfast_regulations.fetching import COLUMNS, LOADERS, Fetcher
from holdfast_regulations.options import PIPELINE, RUN_OPTIONS, RegulationsOptions
from holdfast_regulations.progress import Progress
from holdfast_regulations.reads import evidence_of_item
from holdfast_regulations.runs import gates_of, query_of
from holdfast_regulations.sources import Source
from holdfast_regulations.sources_file import read_sources, shipped_sources
from holdfast_regulations.walking import Walk, require_source

_MOST_RUNS = 32
_NO_JOB = 0
_OFF_SECONDS = 30.0


class Regulations(Pipeline):
    """Every URL of regulatory sources, fetched politely, with immutable evidence of each."""

    name = PIPELINE
    columns = COLUMNS
    lane = Lane.BACKFILL
    options = RUN_OPTIONS
    dedupe = Dedupe(PIPELINE)
    loaders = LOADERS
    max_attempts = 3
    max_attempts_not_found = 1
    backoff = Backoff(30.0, 3600.0, jitter=0.5)
    timeout = 180.0  # a redirect waits for the gate, too
    schedules = (
        Schedule("regulations-daily", "0 6 * * *", "Europe/Zagreb", {"lane": Lane.SENTINEL.value}),
    )

    def __init__(
        self, options: RegulationsOptions | None = None, clock: Clock | None = None
    ) -> None:
        self.settings = options or RegulationsOptions()
        self._clock = clock or SystemClock()
        self._runs: dict[int, dict[str, Source]] = {}
        self._progress = Progress(self.settings.progress_items)
        self.gates = gates_of(self.known_sources.values())
        super().__init__()

    @cached_property
    def known_sources(self) -> Mapping[str, Source]:
        """The sources of the sources file; a job has those that it was started with."""
        path = self.settings.sources
        return read_sources(Path(path)) if path else shipped_sources()

    async def plan(self, tx: Tx, request: Json, streams: StreamStatuses, now: datetime) -> Planned:
        return await planning.plan(request, streams, self.known_sources, self.settings)

    def sources(self, options: Mapping[str, Any]) -> Sequence[str]:
        return tuple(str(options["sources"]).split(","))

    def fingerprint(self, source: str, options: Mapping[str, Any]) -> str:
        return query_of(source, options)

    async def discover(
        self, source: str, cursor: Any, ctx: Context
    ) -> AsyncIterator[Page | NothingYet]:
        await self._require_on(ctx)
        options = ctx.options
        walk = Walk(
            source=require_source(self._sources_of(ctx.job), source),
            definition=options["definitions"][source],
            query=query_of(source, options),
            mode=options.get("mode") or self._sources_of(ctx.job)[source].mode,
            wanted=_wanted(options),
            concurrency=options["concurrency"],
            recheck_days=options.get("recheck_days", 0),
            clock=self._clock,
        )
        async for page in walk.pages(cursor, ctx):
            await self._progress.log(ctx)
            yield page

    async def process(self, row: Json, ctx: Context) -> Done:
        await self._require_on(ctx)
        source = require_source(self._sources_of(ctx.job), row["source"])
        fetcher = Fetcher(source, _wanted(ctx.options), self._clock, self.settings.database_bytes)
        done = await fetcher.fetch(row, ctx)
        await self._progress.log_item(ctx)
        return done

    async def save(self, tx: Tx, settled: Sequence[Settled]) -> None:
        await saving.save(tx, settled)

    async def note(self, tx: Tx, job: Job, notes: Any, taken: int) -> None:
        await saving.note(tx, job, notes, taken)

    async def evidence(self, fetch: Fetch, job_id: int, seq: int) -> Sequence[ItemEvidence]:
        return await evidence_of_item(fetch, job_id, seq)

    async def tend(self, tx: Tx) -> bool:
        return await saving.SEARCH.index_some(tx)

    async def _require_on(self, ctx: Context) -> None:
        """Requires the switch to be on.

        It is read at every page and every item: a run that is switched off waits, and says so."""
        if self.enabled_by is not None and not await ctx.flag(self.enabled_by):
            raise GateWait(self.enabled_by, _OFF_SECONDS, f"{self.enabled_by} is off")

    def _sources_of(self, job: Job) -> dict[str, Source]:
        if job.id == _NO_JOB:  # the jobs of a dry run have no number
            return _stored_sources(job)
        if job.id not in self._runs:
            while len(self._runs) >= _MOST_RUNS:
                del self._runs[next(iter(self._runs))]
            self._runs[job.id] = _stored_sources(job)
        return self._runs[job.id]


def _stored_sources(job: Job) -> dict[str, Source]:
    stored = job.reading.plan.get("sources") or {}
    return {slug: Source.model_validate(table) for slug, table in stored.items()}


def _wanted(options: Mapping[str, Any]) -> DateRange:
    first, last = options.get("date_from"), options.get("date_to")
    return DateRange(
        date.fromisoformat(first) if first else None, date.fromisoformat(last) if last else None
    )
