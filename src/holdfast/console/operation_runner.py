"""Carries out bulk operations step by step, continuing where the last process stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from holdfast.console import Console
from holdfast.console.exports import NewExport
from holdfast.console.items import ItemFilter
from holdfast.console.operations import Candidate, Hold
from holdfast.console.value_search import Value, search
from holdfast.engine.control import Control
from holdfast.errors import (
    ERROR_CODES,
    DatabaseGone,
    IllegalTransition,
    LeaseLost,
    RetryClass,
    UserError,
)
from holdfast.model import FINAL, ItemStatus, JobState, Json
from holdfast.pipeline import Pipeline
from holdfast.rulings import RulingKind

#: What a filter says of items besides their statuses.
NARROWING = ("code", "since", "until", "values")
_LEASE_SECONDS = 60.0
_CHUNK = 500
_AT_ONCE = 20

#: Changes the items with these numbers, and says how far the operation is then.
_Change = Callable[[Hold, list[int], Json], Awaitable[Hold]]


@dataclass(frozen=True, slots=True)
class AttemptLimits:
    """When an item counts as exhausted, where its pipeline does not say."""

    error: int
    not_found: int


class OperationRunner:
    def __init__(
        self,
        console: Console,
        pipelines: Mapping[str, Pipeline],
        limits: AttemptLimits,
        name: str,
        log: Any,
    ) -> None:
        self._console = console
        self._store = console.store
        self._pipelines = pipelines
        self._limits = limits
        self._name = name
        self._log = log
        self._stopped = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def stop(self) -> None:
        """What is under way ends with its step."""
        self._stopped.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def look(self) -> None:
        """Starts the operations that no process carries out; those of different owners run side by
        side, so that a slow one does not delay the others."""
        for operation_id in await self._console.operations.to_do():
            if len(self._tasks) >= _AT_ONCE or self._stopped.is_set():
                return
            hold = await self._console.operations.lease(operation_id, self._name, _LEASE_SECONDS)
            if hold is not None:
                task = asyncio.create_task(self._carry_out(hold))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

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
            except (IllegalTransition, UserError) as error:
                # One job that does not allow it any more is no reason to leave the others.
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
        }
        return await kinds[hold.operation.kind](hold, job_id, number)

    async def _cancel(self, hold: Hold, job_id: int, number: int) -> Hold:
        # One that is cancelled already may be ours: whoever did so was killed before it was noted.
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
        filter = filter_of(target)
        reason = target.get("reason") or f"skipped by {hold.operation.owner_id}"
        if target.get("values"):

            async def skip(hold: Hold, seqs: list[int], position: Json) -> Hold:
                return await self._console.operations.skip_chosen(
                    hold, job_id, seqs, reason, position
                )

            hold = await self._each_found(hold, job_id, number, skip)
            await self._store.outcomes.complete(job_id)
            return hold
        more = True
        while more and not self._stopped.is_set():
            before = hold.operation.done_count
            hold, more = await self._console.operations.skip(hold, job_id, filter, reason)
            await self._spaced(hold, hold.operation.done_count - before)
        await self._store.outcomes.complete(job_id)
        return hold

    async def _reprocess(self, hold: Hold, job_id: int, number: int) -> Hold:
        target = hold.operation.target
        filter = filter_of(target)
        job = await self._store.reads.job(job_id)
        fits = self._fitting(self._pipelines.get(job.pipeline), target)
        reset = target["reset_attempts"]
        if target.get("values"):

            async def reprocess(hold: Hold, seqs: list[int], position: Json) -> Hold:
                return await self._console.operations.reprocess_chosen(
                    hold, job_id, seqs, fits, reset, position
                )

            return await self._each_found(hold, job_id, number, reprocess)
        statuses = [status for status in filter.final if status in FINAL]
        first = (hold.operation.position or {}).get("status", 0)
        for index, status in list(enumerate(statuses))[first:]:
            more = True
            while more and not self._stopped.is_set():
                before = hold.operation.done_count
                hold, more = await self._console.operations.reprocess(
                    hold, job_id, status, filter, fits, reset
                )
                await self._spaced(hold, hold.operation.done_count - before)
            if self._stopped.is_set():
                return hold
            hold = _at(hold, {"job": number, "status": index + 1})
        return hold

    async def _each_found(self, hold: Hold, job_id: int, number: int, change: _Change) -> Hold:
        """Changes what is found by its columns, a search at a time: outside any transaction, since
        a search reads many rows."""
        target = hold.operation.target
        job = await self._store.reads.job(job_id)
        filter, values = self._before(hold, filter_of(target)), values_in(target)
        place = (hold.operation.position or {}).get("page")
        while not self._stopped.is_set():
            found = await search(self._console, job, filter, values, place, _CHUNK)
            place = found.next
            ended = place is None
            position = {"job": number + 1} if ended else {"job": number, "page": place}
            before = hold.operation.done_count
            hold = await change(hold, [item.seq for item in found.items], position)
            if ended:
                break
            await self._spaced(hold, hold.operation.done_count - before)
        return hold

    def _before(self, hold: Hold, filter: ItemFilter) -> ItemFilter:
        """What was finished since the operation was asked for is not looked at, or it would never
        end. Open items are not looked at twice: skipping ends them."""
        begun = hold.operation.begun_at
        if begun is None or hold.operation.kind == "skip":
            return filter
        return replace(filter, until=min(begun, filter.until or begun))

    def _fitting(
        self, pipeline: Pipeline | None, target: Mapping[str, Any]
    ) -> Callable[[Candidate], bool]:
        """Permanent errors and exhausted attempts are left alone, unless asked for."""
        permanent = permanent_codes(pipeline)
        most_error = (pipeline and pipeline.max_attempts) or self._limits.error
        most_misses = (pipeline and pipeline.max_attempts_not_found) or self._limits.not_found

        def fits(item: Candidate) -> bool:
            if not target["include_permanent"] and item.error_code in permanent:
                return False
            if target["reset_attempts"]:
                return True
            return item.attempts < most_error and item.misses < most_misses

        return fits

    async def _spaced(self, hold: Hold, items: int) -> None:
        """At the rate that was asked for, if one was."""
        rate = hold.operation.target.get("items_per_second")
        if not rate:
            return
        seconds = min(items / rate, _LEASE_SECONDS / 2)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopped.wait()


def permanent_codes(pipeline: Pipeline | None) -> frozenset[str]:
    known = {**ERROR_CODES, **(pipeline.error_codes if pipeline else {})}
    return frozenset(code for code, each in known.items() if each.retry is RetryClass.NEVER)


def filter_of(target: Mapping[str, Any]) -> ItemFilter:
    return ItemFilter(
        statuses=tuple(ItemStatus(status) for status in target.get("statuses", ())),
        code=target.get("code"),
        since=_instant(target.get("since")),
        until=_instant(target.get("until")),
        rulings=tuple(RulingKind(kind) for kind in target.get("rulings", ())),
    )


def values_in(target: Mapping[str, Any]) -> tuple[Value, ...]:
    return tuple(Value(column, pattern) for column, pattern in target.get("values", ()))


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _at(hold: Hold, position: Mapping[str, Any]) -> Hold:
    return replace(hold, operation=replace(hold.operation, position=dict(position)))
