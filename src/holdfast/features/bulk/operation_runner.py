"""Carries out bulk operations step by step, continuing where the last process stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from holdfast.errors import (
    ERROR_CODES,
    DatabaseGone,
    LeaseLost,
    RetryClass,
    UserError,
)
from holdfast.features.bulk.operations import Chunk, Following, Hold
from holdfast.features.exports.exports import NewExport
from holdfast.features.items.items import ItemFilter
from holdfast.features.items.value_search import filter_of, search, values_in
from holdfast.kernel.database.chunks import EARLIEST, LATEST, FinishedItems, FreeRanges, NamedItems
from holdfast.kernel.jobs.control import Control
from holdfast.kernel.jobs.reprocess import Candidate, Fits
from holdfast.kernel.pace.retry import RetryPolicy, policy_of
from holdfast.kernel.worker.presence import present
from holdfast.model import Job, JobState
from holdfast.pipeline import Pipeline, with_defaults

if TYPE_CHECKING:
    from holdfast.features.console import Console

#: Conditions of a filter besides the items' statuses.
NARROWING = ("code", "since", "until", "values", "rulings")
_LONGEST_WAIT_SECONDS = 30.0
_CHUNK = 500
_DECISIONS = 50  # how many are written in one transaction
_AT_ONCE = 20


class OperationRunner:
    def __init__(
        self,
        console: Console,
        pipelines: Mapping[str, Pipeline],
        retry: RetryPolicy,
        new_name: Callable[[], str],
        log: Any,
    ) -> None:
        self._console = console
        self._store = console.store
        self._pipelines = pipelines
        self._retry = retry
        self._new_name = new_name
        self._log = log
        self._stopped = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def stop(self) -> None:
        """Ends running operations after their current step."""
        self._stopped.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def look(self) -> None:
        """Starts the operations that no process carries out; those of different owners run side by
        side, so that a slow one does not delay the others."""
        for operation_id in await self._console.operations.to_do():
            if len(self._tasks) >= _AT_ONCE or self._stopped.is_set():
                return
            task = asyncio.create_task(self._try(operation_id, self._new_name()))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _try(self, operation_id: int, name: str) -> None:
        """Carries an operation out, unless another process was first."""
        async with present(self._store, name):
            hold = await self._console.operations.lease(operation_id, name)
            if hold is not None:
                await self._carry_out(hold)

    async def _carry_out(self, hold: Hold) -> None:
        try:
            ended = await self._all_jobs(hold)
        except LeaseLost:
            return  # cancelled, or another process took it over
        except DatabaseGone as error:
            self._log.warning("database.gone", error=str(error))  # its lease ends by itself
            return
        except Exception as error:
            self._log.error("operation.failed", operation=hold.operation.id, exc_info=error)
            await self._console.operations.finish(
                hold, "FAILED", f"{type(error).__name__}: {error}"
            )
            return
        if self._stopped.is_set():
            await self._console.operations.release(ended)
            return
        await self._console.operations.finish(ended, "DONE")
        self._log.info(
            "operation.ended", operation=ended.operation.id, items=ended.operation.done_count
        )

    async def _all_jobs(self, hold: Hold) -> Hold:
        number = (hold.operation.position or {}).get("job", 0)
        while number < len(hold.operation.job_ids) and not self._stopped.is_set():
            job_id = hold.operation.job_ids[number]
            try:
                hold = await self._one_job(hold, job_id, number)
            except UserError as error:
                # A job that no longer allows it does not keep the operation from the other jobs.
                if len(hold.operation.job_ids) == 1:
                    raise
                number_of = hold.operation.id
                self._log.warning(
                    "operation.passed_over", operation=number_of, job_id=job_id, error=str(error)
                )
            if not self._stopped.is_set():
                number += 1
                hold = _at(hold, {"job": number})
        return hold

    async def _one_job(self, hold: Hold, job_id: int, number: int) -> Hold:
        kinds = {
            "cancel": self._cancel,
            "export": self._export,
            "skip": self._skip,
            "reprocess": self._reprocess,
            "decide": self._decide,
        }
        return await kinds[hold.operation.kind](hold, job_id, number)

    async def _cancel(self, hold: Hold, job_id: int, number: int) -> Hold:
        # A job that is already cancelled may be ours: the process was killed before it noted that.
        if (await self._store.reads.job(job_id)).state is not JobState.CANCELLED:
            await Control(self._store, hold.operation.owner_id, self._log).cancel(job_id)
        return await self._console.operations.note(hold, {"job": number + 1})

    async def _export(self, hold: Hold, job_id: int, number: int) -> Hold:
        target = hold.operation.target
        statuses = tuple(map(str, filter_of(target).statuses))
        narrowed = {name: target[name] for name in NARROWING if target.get(name)}
        new = NewExport(
            hold.operation.owner_id,
            job_id,
            target["format"],
            statuses,
            target["with_input"],
            narrowed,
        )
        return await self._console.operations.export(hold, {"job": number + 1}, new)

    async def _skip(self, hold: Hold, job_id: int, number: int) -> Hold:
        target = hold.operation.target
        reason = target.get("reason") or f"skipped by {hold.operation.owner_id}"
        filter = filter_of(target)
        ranges = FreeRanges(filter.code, filter.since or EARLIEST, filter.until or LATEST)

        async def step(hold: Hold, chunk: Chunk[FreeRanges]) -> Hold:
            return await self._console.operations.skip(hold, job_id, chunk, reason)

        # No date limits a search: skipping ends open items, so none is looked at twice.
        job = await self._store.reads.job(job_id)
        hold = await self._every_chunk(hold, job, number, [ranges], filter, step)
        await self._store.outcomes.complete(job_id)
        return hold

    async def _reprocess(self, hold: Hold, job_id: int, number: int) -> Hold:
        job = await self._store.reads.job(job_id)
        fits = self._fitting(self._pipelines.get(job.pipeline), hold.operation.target)
        # Items that finished since the operation was requested are left out, or it would never end.
        filter = filter_of(hold.operation.target)
        begun = hold.operation.begun_at
        filter = replace(filter, until=min(begun, filter.until or begun))
        by_status = [
            FinishedItems(status, filter.code, filter.since or EARLIEST, filter.until or begun)
            for status in filter.final
        ]

        async def step(hold: Hold, chunk: Chunk[FinishedItems]) -> Hold:
            return await self._console.operations.reprocess(hold, job_id, chunk, fits)

        return await self._every_chunk(hold, job, number, by_status, filter, step)

    async def _decide(self, hold: Hold, job_id: int, number: int) -> Hold:
        """Writes what the pipeline proposes for the criteria, chunk by chunk."""
        stored = await self._store.reads.job(job_id)
        pipeline = self._pipelines[stored.pipeline]
        job = with_defaults(pipeline, stored)
        criteria = hold.operation.target["criteria"]
        while not self._stopped.is_set():
            after = (hold.operation.position or {}).get("after", 0)
            proposals = await pipeline.proposals(
                self._store.fetch, job, criteria, after, _DECISIONS
            )
            if not proposals:
                break
            position = {"job": number, "after": proposals[-1].seq}
            operations = self._console.operations
            hold = await operations.decide(hold, job, proposals, position, pipeline.ruling)
        return hold

    async def _every_chunk(
        self,
        hold: Hold,
        job: Job,
        number: int,
        parts: Sequence[Following],
        filter: ItemFilter,
        step: Callable[[Hold, Chunk[Following]], Awaitable[Hold]],
    ) -> Hold:
        """Changes one chunk after another: what the value search finds, or the parts in turn."""
        while not self._stopped.is_set():
            if values_in(hold.operation.target):
                chunk = await self._search_chunk(hold, job, number, filter)
            else:
                chunk = _next_chunk(hold, number, parts)
            if chunk is None:
                return hold
            before = hold.operation.done_count
            hold = await step(hold, chunk)
            await self._spaced(hold, hold.operation.done_count - before)
        return hold

    async def _search_chunk(
        self, hold: Hold, job: Job, number: int, filter: ItemFilter
    ) -> Chunk[Any] | None:
        """Searches outside any transaction, since a search reads many rows."""
        position = hold.operation.position or {}
        if position.get("part", 0) > 0:
            return None
        values = values_in(hold.operation.target)
        page = await search(self._console, job, filter, values, position.get("page"), _CHUNK)
        items = NamedItems([item.seq for item in page.items], filter.until or LATEST)
        end = {"part": 1} if page.next is None else {"page": page.next}
        return Chunk(items, {}, {"job": number, **end})

    def _fitting(self, pipeline: Pipeline | None, target: Mapping[str, Any]) -> Fits:
        """Returns which items fit: permanent errors and exhausted attempts are left out, unless
        requested."""
        permanent = permanent_codes(pipeline)
        retry = self._retry if pipeline is None else policy_of(pipeline, self._retry)

        def fits(item: Candidate) -> bool:
            if not target["include_permanent"] and item.error_code in permanent:
                return False
            if target["reset_attempts"]:
                return True
            return (
                item.attempts < retry.max_attempts_error
                and item.misses < retry.max_attempts_not_found
            )

        return fits

    async def _spaced(self, hold: Hold, items: int) -> None:
        """Waits as the requested rate demands, if there is one."""
        rate = hold.operation.target.get("items_per_second")
        if not rate:
            return
        seconds = min(items / rate, _LONGEST_WAIT_SECONDS)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopped.wait()


def _next_chunk(hold: Hold, number: int, parts: Sequence[Following]) -> Chunk[Following] | None:
    position = hold.operation.position or {}
    part = position.get("part", 0)
    if part >= len(parts):
        return None
    here, end = {"job": number, "part": part}, {"job": number, "part": part + 1}
    return Chunk(parts[part].after(position), here, end)


def permanent_codes(pipeline: Pipeline | None) -> frozenset[str]:
    known = {**ERROR_CODES, **(pipeline.error_codes if pipeline else {})}
    return frozenset(code for code, error in known.items() if error.retry is RetryClass.NEVER)


def _at(hold: Hold, position: Mapping[str, Any]) -> Hold:
    return replace(hold, operation=replace(hold.operation, position=dict(position)))
