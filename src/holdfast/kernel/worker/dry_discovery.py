"""A dry run of discovery: it reads a source as a job does, through gates and robots.txt, and
compares the records with those that are known. Nothing is stored but an entry in the audit log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from holdfast.errors import GateWait, ItemError, RetryClass, error_code
from holdfast.kernel import Store
from holdfast.kernel.record.pages import new_item
from holdfast.kernel.worker.dry_run import require_no_switch
from holdfast.kernel.worker.worker import Worker
from holdfast.kernel.worker.worker_parts import WorkerOptions
from holdfast.model import Job, NothingYet, Record
from holdfast.orders import Start
from holdfast.pipeline import Context, Pipeline

_LONGEST_WAIT_SECONDS = 60.0
_GATE_SECONDS = 3600.0


def dry_options(options: WorkerOptions) -> WorkerOptions:
    """Returns options for a dry run, which stores nothing and only has its gates to wait for."""
    return replace(options, gate_max_wait_seconds=_GATE_SECONDS, stores_robots=False)


@dataclass(slots=True)
class DrySource:
    """The result for one source: of `discovered` records, `new` would become items; `capped` if a
    cap ended it."""

    source: str
    discovered: int = 0
    new: int = 0
    capped: bool = False

    @property
    def known(self) -> int:
        return self.discovered - self.new


@dataclass(frozen=True, slots=True)
class DryLimits:
    max_items: int | None = None
    per_source: Callable[[str], int | None] = lambda source: None
    max_input_bytes: int = 10 * 1024 * 1024


class DryDiscovery:
    def __init__(self, store: Store, pipeline: Pipeline, job: Job, limits: DryLimits) -> None:
        self._store = store
        self._pipeline = pipeline
        self._job = job
        self._limits = limits
        self._seen: set[str] = set()
        self._total = 0

    async def run(self, worker: Worker, start: Start) -> list[DrySource]:
        """Reads every source in turn, within the caps of the job. No existing gate is changed."""
        detail = {"sources": list(start.sources), **self._job.options}
        await self._store.audit.add(
            self._job.owner_id, "dry_run", None, self._pipeline.name, detail
        )
        for gate in start.gates:
            await self._store.gates.introduce(gate)
        walked: list[DrySource] = []
        async with worker.trying(self._job) as ctx:
            for source in start.sources:
                if self._limits.max_items is not None and self._total >= self._limits.max_items:
                    break
                walked.append(await self._walk(DrySource(source), ctx))
        return walked

    async def _walk(self, walked: DrySource, ctx: Context) -> DrySource:
        """Reads a source; waits at closed gates, as a worker would, and continues from the last
        page."""
        cursor = None
        while True:
            await self._require_on(walked.source)
            try:
                async with aclosing(
                    self._pipeline.discover(walked.source, cursor, ctx)  # type: ignore[type-var]
                ) as pages:
                    async for page in pages:
                        await self._require_on(walked.source)
                        if isinstance(page, NothingYet):
                            return walked
                        await self._count(walked, page.records)
                        if page.end or walked.capped:
                            return walked
                        cursor = page.next_cursor
            except GateWait as gate:
                await asyncio.sleep(min(gate.seconds, _LONGEST_WAIT_SECONDS))
            except ItemError as error:
                if error_code(error.code).retry is not RetryClass.THROTTLE:
                    raise
                await asyncio.sleep(min(error.retry_after or 1.0, _LONGEST_WAIT_SECONDS))

    async def _count(self, walked: DrySource, records: Sequence[Record]) -> None:
        items = [new_item(self._pipeline, r, self._limits.max_input_bytes) for r in records]
        dedupe = self._pipeline.dedupe
        new = [True] * len(items)
        if dedupe is not None:
            new = await self._store.ingest.are_new(items, dedupe, self._seen)
        for is_new in new:
            if is_new and self._room(walked) == 0:
                walked.capped = True
                return
            walked.discovered += 1
            walked.new += is_new
            self._total += is_new

    def _room(self, walked: DrySource) -> int | None:
        caps = (
            (self._limits.max_items, self._total),
            (self._limits.per_source(walked.source), walked.new),
        )
        rooms = [limit - count for limit, count in caps if limit is not None]
        return max(0, min(rooms)) if rooms else None

    async def _require_on(self, source: str) -> None:
        scopes = {"all", f"pipeline:{self._pipeline.name}", f"source:{source}"}
        await require_no_switch(self._store, scopes)
