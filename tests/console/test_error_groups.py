"""Errors by code: exact while they are few, bounded and labelled when they are many."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.features.console import open_console
from holdfast.kernel import Settlement, Store
from holdfast.model import ItemStatus
from tests.store.checks import claim, filled_job, outcome_of

ERROR, PENDING = ItemStatus.ERROR, ItemStatus.PENDING


async def _failed_job(store: Store, items: int, code_of: Callable[[int], str]) -> int:
    job_id = await filled_job(store, items)
    while claims := await claim(store, job_id, 3000):
        for claimed in claims:
            outcomes = [
                outcome_of(row, ERROR, error_code=code_of(row[0]), error_message=f"at {row[0]}")
                for row in claimed.rows
            ]
            settlement = Settlement(claimed.lease, outcomes, last=True)
            await store.outcomes.settle(job_id, "one", [settlement])
    return job_id


async def test_few_errors_are_counted_exactly(store: Store) -> None:
    job_id = await _failed_job(store, 1200, lambda seq: "TIMEOUT" if seq > 300 else "PARSE_ERROR")
    found = await open_console(store).jobs.errors_by_code(job_id)
    assert [(group.code, group.count, group.exact) for group in found] == [
        ("TIMEOUT", 900, True),
        ("PARSE_ERROR", 300, True),
    ]
    assert found[0].sample and found[0].first_at and found[0].last_at


async def test_many_errors_are_estimated_from_the_latest_and_no_code_is_missed(
    store: Store,
) -> None:
    def code_of(seq: int) -> str:
        if seq <= 3000:
            return "EARLY" if seq > 40 else "RARE"
        return "TIMEOUT" if seq % 4 else "PARSE_ERROR"

    job_id = await _failed_job(store, 15_000, code_of)
    found = {group.code: group for group in await open_console(store).jobs.errors_by_code(job_id)}
    # The latest 10,000 were counted; there are 15,000.
    assert (found["TIMEOUT"].count, found["TIMEOUT"].exact) == (11_250, False)
    assert (found["PARSE_ERROR"].count, found["PARSE_ERROR"].exact) == (3750, False)
    assert (found["RARE"].count, found["RARE"].exact) == (40, True)
    assert (found["EARLY"].count, found["EARLY"].exact) == (500, False)
    assert found["EARLY"].last_at <= found["TIMEOUT"].first_at  # type: ignore[operator]


async def test_codes_of_items_that_are_tried_again_are_not_errors(store: Store) -> None:
    job_id = await filled_job(store, 2)
    (claimed,) = await claim(store, job_id)
    first, second = claimed.rows
    outcomes = [
        outcome_of(first, PENDING, error_code="TIMEOUT"),
        outcome_of(second, ERROR, error_code="PARSE_ERROR"),
    ]
    await store.outcomes.settle(job_id, "one", [Settlement(claimed.lease, outcomes, last=True)])
    assert [group.code for group in await open_console(store).jobs.errors_by_code(job_id)] == [
        "PARSE_ERROR"
    ]
