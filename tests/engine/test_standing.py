"""Standing jobs in a worker."""

from __future__ import annotations

from typing import Any

import structlog

from holdfast.engine.control import Control
from holdfast.model import JobState
from holdfast.pipeline import Pipeline
from holdfast.store import Store
from tests.engine.one_worker import work
from tests.store.checks import fetch, state_of


class Events(Pipeline):
    standing = True

    async def process(self, row: Any, ctx: Any) -> Any:
        return row


async def test_a_worker_opens_declared_standing_jobs_once_and_ends_when_idle(
    store: Store,
) -> None:
    control = Control(store, "tester", structlog.get_logger())
    job_id, _ = await control.open(Events(), {})
    await work(store, Events())
    jobs = await fetch(store, "select id, owner_id, standing from jobs")
    assert jobs == [(job_id, "tester", 1)]
    assert await state_of(store, job_id) is JobState.RUNNING
