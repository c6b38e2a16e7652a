"""One item to one outcome: what a pipeline gives or raises, and what becomes of it."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import structlog

from holdfast import Category, ErrorCode, Failed, NotFound, Pipeline, Retry, RetryClass, Skip
from holdfast.clock import SystemClock
from holdfast.errors import GateWait, ItemError
from holdfast.kernel.record.execute import Execute, ExecuteParts, ItemOptions
from holdfast.kernel.worker.threads import Threads
from holdfast.model import ItemStatus, Job, JobState, Outcome
from holdfast.pipeline import pipeline
from tests.engine.bounds import retry_policy

FRESH = (7, '{"title": "Chair"}', 0, 0, 0)
JOB = Job(1, "demo", "demo", JobState.RUNNING, options={"market": "VN"})


def execute_of(made: Pipeline, **limits: Any) -> Execute:
    defaults = {"timeout_seconds": 5.0, "max_result_bytes": 1000}
    parts = ExecuteParts(
        http=None,  # type: ignore[arg-type]
        gates=lambda name: name,
        facilities=lambda pipeline, job: SimpleNamespace(
            cache=None, read=None, load=None, flag=None, files=None, file=None
        ),
        retry=retry_policy(),
        limits=ItemOptions(**(defaults | limits)),
        threads=Threads(2),
        clock=SystemClock(),
        rng=random.Random(1),
    )
    return Execute(parts, made, JOB, lambda: 1.0, structlog.get_logger())


async def outcome_of(function: Callable[..., Any], row: Any = FRESH, **options: Any) -> Outcome:
    return await execute_of(pipeline(**options)(function))(row)


def gives(value: Any) -> Callable[..., Any]:
    async def function(row: Any, ctx: Any) -> Any:
        return value

    return function


def raises(error: Any) -> Callable[..., Any]:
    async def function(row: Any, ctx: Any) -> Any:
        raise error

    return function


async def test_result_is_kept_as_json() -> None:
    outcome = await outcome_of(gives({"price": 12, "shop": "Kontor"}), columns=["price"])
    assert outcome[:7] == (7, ItemStatus.DONE, 1, 1, 0, None, '{"price":12,"shop":"Kontor"}')


@pytest.mark.parametrize("said", [Skip("sold out"), Skip, NotFound, NotFound()])
@pytest.mark.parametrize("way", [gives, raises])
async def test_what_is_returned_may_be_raised(said: Any, way: Any) -> None:
    outcome = await outcome_of(way(said), (7, "{}", 1, 0, 1))
    assert outcome.status in (ItemStatus.SKIPPED, ItemStatus.NOT_FOUND)
    assert outcome.result is None


async def test_not_found_is_looked_for_again_by_its_own_limit() -> None:
    first = await outcome_of(raises(NotFound))
    assert (first.status, first.misses, first.attempts) == (ItemStatus.PENDING, 1, 0)
    last = await outcome_of(raises(NotFound), (7, "{}", first.tries, 0, first.misses))
    assert (last.status, last.misses, last.tries) == (ItemStatus.NOT_FOUND, 2, 2)


async def test_retry_waits_at_least_as_long_as_asked() -> None:
    outcome = await outcome_of(gives(Retry(after=120)))
    assert outcome.status is ItemStatus.PENDING
    assert outcome.delay >= 120


async def test_throttled_try_uses_up_no_attempt() -> None:
    outcome = await outcome_of(raises(ItemError("RATE_LIMITED", "429", retry_after=30)))
    assert (outcome.status, outcome.attempts, outcome.tries) == (ItemStatus.PENDING, 0, 1)
    assert outcome.delay >= 30


@pytest.mark.parametrize("code", ["PARSE_ERROR", "ACCESS_DENIED", "CONTENT_REMOVED"])
async def test_permanent_error_is_never_tried_again(code: str) -> None:
    outcome = await outcome_of(raises(Failed(code, "no")))
    assert (outcome.status, outcome.error_code) == (ItemStatus.ERROR, code)


async def test_last_attempt_ends_as_error() -> None:
    outcome = await outcome_of(raises(ValueError("odd")), (7, "{}", 4, 4, 0))
    assert (outcome.status, outcome.attempts) == (ItemStatus.ERROR, 5)
    assert outcome.error_message == "ValueError: odd"


async def test_own_code_is_judged_by_the_pipelines_policy() -> None:
    code = ErrorCode("SOLD_OUT", Category.CONTENT, RetryClass.NEVER)
    outcome = await outcome_of(raises(Failed("SOLD_OUT")), error_codes={"SOLD_OUT": code})
    assert outcome.status is ItemStatus.ERROR
    unknown = await outcome_of(raises(Failed("SOLD_OUT")))
    assert unknown.status is ItemStatus.PENDING


async def test_item_that_waits_for_a_gate_was_no_try() -> None:
    outcome = await outcome_of(raises(GateWait("shop", 9.0, "closed")))
    assert (outcome.status, outcome.tries, outcome.attempts) == (ItemStatus.PENDING, 0, 0)
    assert (outcome.delay, outcome.logged, outcome.charged) == (9.0, False, False)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"price": object()}, "not JSON"),
        ({"price": "\ud800"}, "not JSON"),
        ({"shop": "x"}, "lacks the column price"),
        ("cheap", "not a dict"),
        (None, "not a dict"),
        ({"price": "x" * 2000}, "HOLDFAST_MAX_RESULT_BYTES"),
    ],
)
async def test_result_that_breaks_the_contract_says_how(value: Any, told: str) -> None:
    outcome = await outcome_of(gives(value), columns=["price"])
    assert outcome.status is ItemStatus.ERROR
    assert outcome.error_code in ("INVALID_RESULT", "TOO_LARGE")
    assert told in (outcome.error_message or "")


async def test_result_without_several_columns_names_them() -> None:
    outcome = await outcome_of(gives({}), columns=["price", "shop"])
    assert outcome.error_message == "the result lacks the columns price, shop"


async def test_message_is_fit_for_any_database() -> None:
    outcome = await outcome_of(raises(Failed("PARSE_ERROR", "a\0b\ud800" + "x" * 9000)))
    message = outcome.error_message or ""
    assert "\0" not in message
    assert len(message.encode()) < 3000


async def test_normalized_row_is_what_process_gets() -> None:
    class Titles(Pipeline):
        def normalize(self, row: Any) -> Any:
            return {"title": row["title"].lower()}

        async def process(self, row: Any, ctx: Any) -> Any:
            return {"seen": row["title"], "attempt": ctx.attempt, "market": ctx.options["market"]}

    outcome = await execute_of(Titles())((7, '{"title": "Chair"}', 2, 1, 0))
    assert outcome.normalized == '{"title":"chair"}'
    assert outcome.result == '{"seen":"chair","attempt":3,"market":"VN"}'


async def test_plain_function_runs_in_a_thread_beside_the_loop() -> None:
    def slow(row: Any, ctx: Any) -> Any:
        time.sleep(0.2)
        return {"title": row["title"]}

    execute = execute_of(pipeline(slow))
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.01)

    ticking = asyncio.create_task(tick())
    outcomes = await asyncio.gather(execute(FRESH), execute(FRESH))
    ticking.cancel()
    assert [outcome.status for outcome in outcomes] == [ItemStatus.DONE] * 2
    assert ticks > 3


async def test_save_that_failed_is_retried_as_the_same_try() -> None:
    execute = execute_of(pipeline(gives({})))
    done = await execute(FRESH)
    again = execute.save_failed(done, ValueError("duplicate key"))
    assert (again.status, again.tries, again.attempts) == (ItemStatus.PENDING, 1, 1)
    assert again.error_code == "DATABASE_ERROR"
