"""Mistakes in the code that a pipeline runs at the end of a job, or when it plans: the job fails
with a message, the worker continues, and once the mistake is fixed the job can be resumed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import structlog

from holdfast.errors import PipelineError
from holdfast.kernel import Store
from holdfast.kernel.jobs.control import Control, JobRequest
from holdfast.kernel.jobs.planning import planner_at_end
from holdfast.model import JobState, Page, Record
from holdfast.options import Option
from holdfast.orders import Planned, Start, Verified
from holdfast.pipeline import Pipeline
from tests.engine.one_worker import work


class Shelf(Pipeline):
    """Concludes as the test says; anything but a conclusion is a mistake."""

    name = "shelf"

    def __init__(self) -> None:
        super().__init__()
        self.conclusion: Any = Verified(1, 1, True)

    async def discover(self, source: str, cursor: Any, ctx: Any) -> AsyncIterator[Page]:
        yield Page([Record({"book": "oak"})], end=True)

    async def process(self, row: dict[str, Any], ctx: Any) -> Any:
        return row

    async def conclude(self, tx: Any, job: Any, stream: Any) -> Any:
        if isinstance(self.conclusion, Exception):
            raise self.conclusion
        return self.conclusion


class PlannedShelf(Shelf):
    """Its plan has no answer to {"follow": source}."""

    async def plan(self, tx: Any, request: Any, streams: Any, now: Any) -> Any:
        return Planned((Start(request["shelf"], "full", "planned", {}),))


def control_of(store: Store) -> Control:
    return Control(store, "ada", structlog.get_logger())


@pytest.mark.parametrize("mistake", [KeyError("pages"), None])
async def test_job_whose_conclusion_fails_is_failed_and_can_be_resumed(
    store: Store, mistake: Any
) -> None:
    shelf, control = Shelf(), control_of(store)
    shelf.conclusion = mistake
    job_id = await control.start(JobRequest(shelf))
    await work(store, shelf)
    job = await store.reads.job(job_id)
    assert job.state is JobState.FAILED and "`conclude` of the pipeline failed" in (job.error or "")

    shelf.conclusion = Verified(1, 1, True)
    await control.resume(job_id)
    ended = await store.outcomes.complete(job_id, planner_at_end(shelf, job))
    assert ended is JobState.DONE
    assert (await store.reads.counters(job_id)).done == 1


async def test_job_that_is_older_than_an_option_is_concluded_with_its_default(
    store: Store,
) -> None:
    class Newer(Shelf):
        options = (Option("pages", int, default=1),)

        async def conclude(self, tx: Any, job: Any, stream: Any) -> Any:
            return Verified(job.options["pages"], 1, True)

    job_id = await control_of(store).start(JobRequest(Shelf()))
    await work(store, Newer())
    assert (await store.reads.job(job_id)).state is JobState.DONE


async def test_plan_that_fails_after_a_job_fails_the_job(store: Store) -> None:
    shelf = PlannedShelf()
    (job_id,) = (await control_of(store).request(shelf, {"shelf": "left"})).job_ids
    await work(store, shelf)
    job = await store.reads.job(job_id)
    assert job.state is JobState.FAILED and "`plan` of the pipeline failed" in (job.error or "")


async def test_plan_that_fails_on_request_is_an_error_of_the_pipeline(store: Store) -> None:
    with pytest.raises(PipelineError, match="`plan` of the pipeline shelf failed: KeyError"):
        await control_of(store).request(PlannedShelf(), {"force_full": "left"})


@pytest.mark.parametrize("source", [5, None, "a\0b"])
async def test_source_that_is_not_text_is_an_error_of_the_pipeline(
    store: Store, source: Any
) -> None:
    shelf = Shelf()
    shelf.sources = lambda options: [source]  # type: ignore[method-assign]
    with pytest.raises(PipelineError, match="not text"):
        await control_of(store).start(JobRequest(shelf))
