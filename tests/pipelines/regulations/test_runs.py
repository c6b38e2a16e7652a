"""Runs from beginning to end: URLs are found, fetched and stored, within their caps."""

from __future__ import annotations

from holdfast.model import JobState, Lane
from tests.pipelines.regulations.desk import Desk
from tests.pipelines.regulations.world import GAZETTE, answered_twice, assert_never_asked


async def test_run_stores_evidence_of_every_act_once(desk: Desk) -> None:
    job_id = await desk.run(mode="sitemap")
    job = await desk.store.reads.job(job_id)
    assert (job.state, job.lane, job.mode) == (JobState.DONE, Lane.BACKFILL, "sitemap")
    counters = await desk.counters(job_id)
    assert (counters.accepted, counters.done, counters.known) == (18, 18, 6)
    captures = await desk.captures()
    assert len(captures) == 18
    assert {(status, reason) for _, status, reason, _ in captures} <= {(200, "NEW"), (200, "COPY")}
    assert answered_twice(desk.world.visits) == []
    assert_never_asked(desk.world.visits_to(GAZETTE), lambda path: path.startswith("/oglasi"))
