"""Turns one item into one Outcome: runs the pipeline's function and maps what it returned or
raised."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from holdfast.clock import Clock
from holdfast.columns import BAD_ROW, EXCERPT, LINE, RowNames
from holdfast.errors import (
    Failed,
    GateWait,
    HoldfastError,
    ItemError,
    NotFound,
    Retry,
    Skip,
    TwinColumns,
    error_code,
)
from holdfast.kernel.database.driver import Values
from holdfast.kernel.pace.retry import RetryPolicy, Verdict, decide, decide_not_found, policy_of
from holdfast.kernel.worker.facilities import BlockingFacilities
from holdfast.kernel.worker.threads import BlockingHttp, Threads, blocking_context
from holdfast.model import Item, ItemStatus, Job, Outcome
from holdfast.pipeline import Context, Done, Facilities, Http, OpenGate, Pipeline
from holdfast.settings import setting
from holdfast_client.json_depth import DEEPEST, is_too_deep
from holdfast_client.storable import storable_text

_MESSAGE_CHARACTERS = 2000
_CODE_CHARACTERS = 64
_LONGEST_SECONDS = 30 * 86_400.0
_RETURNED = (NotFound, Skip, Retry, Failed)
_DONE = ItemStatus.DONE


@dataclass(frozen=True, slots=True)
class ItemOptions:
    timeout_seconds: float = setting(
        60.0,
        "Time limit for one item, unless its pipeline sets one.",
        0.01,
        86_400,
        name="ITEM_TIMEOUT_SECONDS",
    )
    threads: int = setting(32, "Threads per worker for plain `def` pipelines.", 1, 1000)
    max_input_bytes: int = setting(10 * 1024**2, "Largest input of one item.", 1, 1024**3)
    max_result_bytes: int = setting(10 * 1024**2, "Largest result of one item.", 1, 1024**3)


@dataclass(frozen=True, slots=True)
class ExecuteParts:
    """What the items of all jobs of one worker share."""

    http: Http
    gates: OpenGate
    facilities: Callable[[Pipeline, Job], Facilities]
    retry: RetryPolicy
    limits: ItemOptions
    threads: Threads
    clock: Clock
    rng: random.Random


class Execute:
    """Runs the items of one job. Its overhead for a no-op item is a few microseconds."""

    def __init__(
        self,
        parts: ExecuteParts,
        pipeline: Pipeline,
        job: Job,
        spacing: Callable[[], float],
        log: Any,
    ) -> None:
        self.pipeline = pipeline
        self.job = job
        self.timeout = pipeline.timeout or parts.limits.timeout_seconds
        self._policy = policy_of(pipeline, parts.retry)
        self._spacing = spacing
        self._limits = parts.limits
        self._threads = parts.threads
        self._clock = parts.clock
        self._rng = parts.rng
        self._log = log
        self._columns = frozenset(pipeline.columns)
        self.named = RowNames(None if job.standing else job.reading.column_names, pipeline.inputs)
        self._is_named = bool(self.named)
        # Rows of files are added to a standing job too.
        self._has_rows = job.standing or job.reading.table is not None
        self._codes = dict(pipeline.error_codes)
        self._process: Callable[[Any, Context], Any] = pipeline.process
        self._http = parts.http
        self._gates = parts.gates
        self._facilities = parts.facilities(pipeline, job)
        if pipeline.threaded:
            loop = asyncio.get_running_loop()
            self._http = BlockingHttp(parts.http, loop)
            self._gates = lambda name, cost: blocking_context(parts.gates(name, cost), loop)
            self._facilities = BlockingFacilities(self._facilities, loop)
            self._process = self._in_thread

    async def __call__(self, row: Values) -> Outcome:
        seq, text, tries, attempts, misses = row
        started = self._clock.monotonic()
        normalized = None
        error: BaseException
        try:
            record = orjson.loads(text)
            if self._has_rows and BAD_ROW in record:
                raise _unreadable(record)
            if self._is_named:
                record = self.named(record)
            if self.pipeline.normalizes:
                record = self.pipeline.normalize(record)
                normalized = self._normalized(record)
            ctx = Context(
                self.job, seq, tries + 1, self._http, self._gates, self._log, self._facilities
            )
            value = await self._process(record, ctx)
            result = self._encoded(value)
            seconds = self._clock.monotonic() - started
            if type(result) is str:
                return Outcome(
                    seq, _DONE, tries + 1, attempts + 1, misses, normalized, result,
                    None, None, seconds, 0.0, True, True,
                    value.effects if type(value) is Done else None,
                )  # fmt: skip
            error = result
        except asyncio.CancelledError:
            raise
        except BaseException as caught:
            # This includes sys.exit and the like: an item must not end its worker.
            error = caught
        seconds = self._clock.monotonic() - started
        outcome = self._failed(Item(*row), error)
        effects = getattr(error, "effects", None)
        return outcome._replace(seconds=seconds, normalized=normalized, effects=effects)

    async def in_time(self, row: Values) -> Outcome:
        """Runs an item of a dry run within its timeout; places watch the time of all their items
        together."""
        try:
            async with asyncio.timeout(self.timeout):
                return await self(row)
        except TimeoutError:
            return self.timed_out(row)

    def cancelled(self, row: Values) -> Outcome:
        """Returns the outcome of an item that raised CancelledError by itself."""
        return self._failed(Item(*row), ItemError("UNKNOWN_ERROR", "CancelledError"))

    def timed_out(self, row: Values) -> Outcome:
        """Returns the outcome of an item that was cancelled after its timeout."""
        if self.pipeline.threaded:
            self._threads.stuck()
        error = ItemError("TIMEOUT", f"took longer than {self.timeout:g} s")
        return self._failed(Item(*row), error)._replace(seconds=self.timeout)

    def save_failed(self, outcome: Outcome, error: Exception) -> Outcome:
        """Returns the outcome of an item whose domain rows could not be written."""
        missed = outcome.status is ItemStatus.NOT_FOUND
        item = Item(
            outcome.seq,
            "",
            outcome.tries - 1,
            outcome.attempts if missed else max(0, outcome.attempts - 1),
            outcome.misses,
        )
        return self._failed(item, ItemError("DATABASE_ERROR", f"save: {error}"))

    async def _in_thread(self, record: Any, ctx: Context) -> Any:
        loop = asyncio.get_running_loop()
        result, error = await loop.run_in_executor(
            self._threads.pool, _caught, self.pipeline.process, record, ctx
        )
        if error is not None:
            raise error
        return result

    def _normalized(self, record: Any) -> str:
        text = orjson.dumps(record).decode()
        limit = self._limits.max_result_bytes
        if len(text) > limit:
            raise ItemError("TOO_LARGE", f"the normalized row has {len(text):,} bytes of {limit:,}")
        if is_too_deep(text):
            raise ItemError("TOO_LARGE", f"the normalized row nests deeper than {DEEPEST} levels")
        return text

    def _encoded(self, value: Any) -> Any:
        """Returns the result as JSON text, or the outcome that the pipeline returned instead."""
        if type(value) is not dict:
            if isinstance(value, _RETURNED):
                return value
            if isinstance(value, type) and issubclass(value, _RETURNED):
                return value()
            if isinstance(value, Done):
                if value.effects is not None and not self.pipeline.saves:
                    return ItemError("INVALID_RESULT", "it has effects, but there is no `save`")
                value = value.result
        try:
            text = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
        except (TypeError, ValueError) as error:
            return ItemError("INVALID_RESULT", f"the result is not JSON: {error}")
        if len(text) > self._limits.max_result_bytes:
            limit = self._limits.max_result_bytes
            return ItemError(
                "TOO_LARGE",
                f"the result has {len(text):,} bytes, more than HOLDFAST_MAX_RESULT_BYTES={limit}",
            )
        if is_too_deep(text):
            return ItemError("TOO_LARGE", f"the result nests deeper than {DEEPEST} levels")
        if self._columns and not (type(value) is dict and self._columns.issubset(value)):
            return ItemError("INVALID_RESULT", self._missing_columns(value))
        return text

    def _missing_columns(self, value: Any) -> str:
        if not isinstance(value, dict):
            return f"the result is {type(value).__name__}, not a dict with the pipeline's columns"
        missing = [name for name in self.pipeline.columns if name not in value]
        columns = "column" if len(missing) == 1 else "columns"
        return f"the result lacks the {columns} {', '.join(missing)}"

    def _failed(self, item: Item, error: BaseException) -> Outcome:
        try:
            return self._judged(item, error)
        except Exception as trouble:
            # An exception may be impossible even to print, or its code may not be a code.
            text = f"{type(error).__name__}, and {type(trouble).__name__} while handling it"
            return self._problem(item, ItemError("UNKNOWN_ERROR", text))

    def _judged(self, item: Item, error: BaseException) -> Outcome:
        match error:
            case NotFound():
                return self._not_found(item, error)
            case Skip():
                return self._final(item, ItemStatus.SKIPPED, None, _storable(str(error)) or None)
            case GateWait():
                return self._waiting(item, error)
            case Retry():
                problem = ItemError(
                    "UNKNOWN_ERROR", error.reason, retry_after=_seconds(error.after)
                )
            case Failed():
                problem = ItemError(error.code, error.message)
            case ItemError():
                problem = error
            case TimeoutError():
                problem = ItemError("TIMEOUT", str(error) or "timed out")
            case ConnectionRefusedError():
                problem = ItemError("CONNECTION_REFUSED", str(error))
            case ConnectionError():
                problem = ItemError("NETWORK_ERROR", str(error))
            case TwinColumns():
                problem = ItemError("BAD_ROW", error.message)
            case HoldfastError():
                problem = ItemError("INTERNAL_ERROR", str(error))
            case _:
                problem = ItemError("UNKNOWN_ERROR", f"{type(error).__name__}: {error}")
        return self._problem(item, problem)

    def _problem(self, item: Item, problem: ItemError) -> Outcome:
        code = _storable(str(problem.code))[:_CODE_CHARACTERS]
        verdict = decide(
            self._policy,
            error_code(code, self._codes),
            attempts=item.attempts + 1,
            throttles=item.tries - item.attempts - item.misses,
            retry_after=_seconds(problem.retry_after),
            rng=self._rng,
            spacing=self._spacing(),
        )
        message = _storable(str(problem.message))
        if not verdict.retry:
            return self._final(item, ItemStatus.ERROR, code, message)
        return self._again(item, verdict, code, message)

    def _not_found(self, item: Item, error: NotFound) -> Outcome:
        result = None if error.result is None else self._encoded(error.result)
        if isinstance(result, ItemError):
            return self._problem(item, result)
        misses = item.misses + 1
        verdict = decide_not_found(
            self._policy, misses=misses, rng=self._rng, spacing=self._spacing()
        )
        if not verdict.retry:
            return Outcome(
                item.seq,
                ItemStatus.NOT_FOUND,
                item.tries + 1,
                item.attempts,
                misses,
                result=result,
                error_message=_storable(error.reason) or None,
            )
        again = self._again(item, verdict, "NOT_FOUND", verdict.why)
        return again._replace(attempts=item.attempts, misses=misses)

    def _final(
        self, item: Item, status: ItemStatus, code: str | None, message: str | None
    ) -> Outcome:
        return Outcome(
            item.seq,
            status,
            item.tries + 1,
            item.attempts + 1,
            item.misses,
            error_code=code,
            error_message=message,
        )

    def _again(self, item: Item, verdict: Verdict, code: str, message: str) -> Outcome:
        return Outcome(
            item.seq,
            ItemStatus.PENDING,
            item.tries + 1,
            item.attempts + verdict.charged,
            item.misses,
            error_code=code,
            error_message=message,
            delay=verdict.delay,
            charged=verdict.charged,
        )

    def _waiting(self, item: Item, wait: GateWait) -> Outcome:
        """Returns the outcome of an item that gives up its place; this did not count as a try."""
        return Outcome(
            item.seq,
            ItemStatus.PENDING,
            item.tries,
            item.attempts,
            item.misses,
            error_code="GATE",
            error_message=_storable(f"{wait.gate}: {wait.reason}"),
            delay=min(wait.seconds, _LONGEST_SECONDS),
            charged=False,
            logged=False,
        )


def _unreadable(record: dict[str, Any]) -> ItemError:
    """Returns the error of a row that the file's reader could not turn into a record."""
    place = f"line {record.get(LINE):,} " if isinstance(record.get(LINE), int) else "the row "
    return ItemError("BAD_ROW", f"{place}{record[BAD_ROW]}: {record.get(EXCERPT, '')}")


def _caught(
    process: Callable[[Any, Context], Any], record: Any, ctx: Context
) -> tuple[Any, BaseException | None]:
    """Returns the result or the error: a future does not accept StopIteration, and a GeneratorExit
    from one closes its awaiter."""
    try:
        return process(record, ctx), None
    except BaseException as error:
        return None, error


def _seconds(requested: Any) -> float | None:
    """Returns a wait that a pipeline or a site requested; nonsense is ignored."""
    try:
        seconds = float(requested)
    except (TypeError, ValueError):
        return None
    return min(seconds, _LONGEST_SECONDS) if math.isfinite(seconds) else None


def _storable(text: str) -> str:
    return storable_text(text, _MESSAGE_CHARACTERS)
