"""Records from outside: those in which a pipeline finds no key are refused, whatever it raises."""

from __future__ import annotations

import random
import string
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
import structlog

from holdfast.errors import UserError
from holdfast.kernel import Store
from holdfast.kernel.arrivals.adding import Adding
from holdfast.kernel.jobs.control import Control, JobRequest
from holdfast.model import Job, JobState
from holdfast.pipeline import Dedupe, Pipeline

JOB = Job(1, "orders", "orders", JobState.RUNNING, standing=True)


class Orders(Pipeline):
    name = "orders"
    dedupe = Dedupe("orders")

    def key(self, row: dict[str, Any]) -> str | None:
        number: str = row["number"]
        return number

    async def process(self, row: dict[str, Any], ctx: Any) -> Any:
        return row


def adding() -> Adding:
    store: Any = None  # nothing is stored
    return Adding(store, {"orders": Orders()}, 1000, structlog.get_logger())


@pytest.mark.parametrize("row", [5, None, "x", [1], {}, {"number": 5}, {"number": ["a"]}])
def test_record_without_a_key_is_refused(row: Any) -> None:
    with pytest.raises(UserError):
        adding().addition(JOB, [row])


@pytest.mark.parametrize(
    "run_at",
    [
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
        datetime(9999, 12, 31, 23, tzinfo=timezone(-timedelta(hours=12))),
    ],
)
def test_time_that_no_database_stores_is_refused(run_at: datetime) -> None:
    with pytest.raises(UserError, match="between the years"):
        adding().addition(JOB, [{"number": "a"}], run_at=run_at)


async def test_long_key_is_stored_and_known_again(store: Store) -> None:
    """PostgreSQL's indexes refuse long values: the key is shortened, and still distinct."""
    job_id, _ = await Control(store, "ada", structlog.get_logger()).open(JobRequest(Orders()))
    job = await store.reads.job(job_id)
    rng = random.Random(1)
    number = "".join(rng.choices(string.ascii_letters, k=9000))
    rows = [{"number": number}, {"number": number[:-1]}, {"number": number}]
    added = Adding(store, {"orders": Orders()}, 100_000, structlog.get_logger())
    assert (await added.add(added.addition(job, rows)))[1:] == (2, 1)
