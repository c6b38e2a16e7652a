"""Create, pause, resume, cancel: a job's states and who may change them."""

from __future__ import annotations

import pytest

from holdfast.errors import IllegalTransition, LeaseLost, UserError
from holdfast.features.console import open_console
from holdfast.kernel import NewJob, NewStream, Store
from holdfast.kernel.database.chunks import FinishedItems
from holdfast.model import ItemStatus, JobState
from holdfast.reading import Dedupe, Reading
from tests.store.checks import (
    assert_takes_no_page,
    audit_of,
    claim,
    claim_one,
    fetch,
    filled_job,
    finished_job,
    ingest,
    items_of,
    lease_stream,
    make_job,
    page_of,
    records,
    settle,
    state_of,
    status_counts,
    work_off,
)

DONE = ItemStatus.DONE


async def test_new_job_runs_with_its_streams_and_is_audited(store: Store) -> None:
    job_id = await make_job(store, "north", "south")
    job = await store.reads.job(job_id)
    assert job.state is JobState.RUNNING
    assert job.started_at is not None and job.finished_at is None
    assert [stream.source for stream in await store.streams.of_job(job_id)] == ["north", "south"]
    audit = await audit_of(store, job_id)
    assert [(entry["actor"], entry["action"]) for entry in audit] == [("tester", "start")]


READING = Reading(
    pipeline_file="prices.py",
    table={"encoding": "utf-8", "names": {"Titel": "title"}},
    images=True,
    dedupe=Dedupe("prices", failed="skip"),
    inputs=["title"],
    fed_by_consumers=True,
    plan={"from": {"shelf": 3}},
)


async def test_job_keeps_what_it_was_given(store: Store) -> None:
    new = NewJob(
        "prices",
        "Preise – März",
        [NewStream("file {job}", "v1")],
        owner_id="anna",
        mode="full",
        reference="prices.py:prices",
        input_key="abc",
        columns=["title", "price"],
        options={"market": "VN"},
        reading=READING,
        max_items=7,
    )
    job_id = await store.jobs.create(new, "anna")
    job = await store.reads.job(job_id)
    assert (job.pipeline, job.name, job.owner_id, job.mode) == (
        "prices", "Preise – März", "anna", "full",
    )  # fmt: skip
    assert (job.reference, job.input_key, job.max_items) == ("prices.py:prices", "abc", 7)
    assert job.columns == ("title", "price") and job.options == {"market": "VN"}
    assert job.reading == READING
    assert (await store.streams.of_job(job_id))[0].source == f"file {job_id}"
    assert await store.reads.job_by_input("prices", "abc", job.owner_id) == job_id
    assert await store.reads.job_by_input("prices", "abc", "another") is None


async def test_source_that_another_live_job_walks_is_refused(store: Store) -> None:
    await make_job(store, "site")
    with pytest.raises(UserError, match="another job is reading site"):
        await make_job(store, "site")
    assert len(await open_console(store).jobs.page(None, 10)) == 1


async def test_new_job_on_a_walked_source_begins_a_new_generation(store: Store) -> None:
    first = await make_job(store, "site")
    stream = await lease_stream(store, first)
    await ingest(store, stream, records(2), end=True)
    second = await make_job(store, "site")
    again = await lease_stream(store, second)
    assert (again.generation, again.cursor, again.pages_count) == (2, None, 0)
    await ingest(store, again, records(2))
    await assert_takes_no_page(store, stream)


async def test_source_of_a_live_job_whose_discovery_failed_is_not_taken_from_it(
    store: Store,
) -> None:
    job_id = await make_job(store, "site")
    stream = await lease_stream(store, job_id)
    await ingest(store, stream, records(2))
    await store.ingest.fail_stream(stream, "gone")
    with pytest.raises(UserError):
        await make_job(store, "site")
    await work_off(store, job_id)
    assert await store.outcomes.complete(job_id) is JobState.FAILED


async def test_paused_job_gives_nothing_out_but_takes_results(store: Store) -> None:
    job_id = await filled_job(store, 10)
    held = await claim_one(store, job_id, 4)
    assert await store.jobs.pause(job_id, "tester") is JobState.PAUSED
    assert await claim(store, job_id) == []
    assert await settle(store, held) == []
    assert await store.outcomes.complete(job_id) is None
    assert await store.jobs.resume(job_id, "tester") is JobState.RUNNING
    assert await work_off(store, job_id) == 6
    assert await store.outcomes.complete(job_id) is JobState.DONE


async def test_paused_job_leases_no_stream(store: Store) -> None:
    job_id = await make_job(store)
    await store.jobs.pause(job_id, "tester")
    assert await store.ingest.lease_stream(job_id, "walker") is None


async def test_cancel_removes_the_ranges_and_refuses_results_and_pages(store: Store) -> None:
    job_id = await make_job(store)
    stream = await lease_stream(store, job_id)
    await ingest(store, stream, records(10))
    held = await claim_one(store, job_id, 4)
    first = held.rows[0][0]
    await settle(store, held, only=[first])
    assert await store.jobs.cancel(job_id, "tester") is JobState.CANCELLED
    assert await open_console(store).ranges.count(job_id) == 0
    assert await settle(store, held) == [held.lease]
    await assert_takes_no_page(store, stream)
    assert await status_counts(store, job_id) == {"DONE": 1, "SKIPPED": 9}
    assert (await store.reads.counters(job_id)).skipped == 9


async def test_items_of_a_cancelled_job_say_why_they_were_skipped(store: Store) -> None:
    job_id = await filled_job(store, 3)
    held = await claim_one(store, job_id)
    await settle(store, held, ItemStatus.PENDING, only=[held.rows[0][0]])
    await settle(store, held, only=[held.rows[1][0]])
    await store.jobs.cancel(job_id, "tester")
    listed = await items_of(store, job_id)
    assert [item.error_code for item in listed] == ["CANCELLED", None, "CANCELLED"]
    only = [
        (item.seq, item.error_code) for item in await items_of(store, job_id, [ItemStatus.SKIPPED])
    ]
    assert only == [(listed[0].seq, "CANCELLED"), (listed[2].seq, "CANCELLED")]


ILLEGAL = [
    ("pause", "PAUSED"), ("pause", "DONE"), ("pause", "FAILED"), ("pause", "CANCELLED"),
    ("resume", "CANCELLED"), ("cancel", "DONE"), ("cancel", "CANCELLED"),
    ("reprocess", "CANCELLED"),
]  # fmt: skip


async def _job_in(store: Store, state: str) -> int:
    if state == "DONE":
        return await finished_job(store, DONE)
    job_id = await make_job(store)
    stream = await lease_stream(store, job_id)
    await ingest(store, stream, records(1))
    if state == "PAUSED":
        await store.jobs.pause(job_id, "tester")
    elif state == "CANCELLED":
        await store.jobs.cancel(job_id, "tester")
    elif state == "FAILED":
        await store.ingest.fail_stream(stream, "gone")
        await work_off(store, job_id)
        await store.outcomes.complete(job_id)
    assert await state_of(store, job_id) == state
    return job_id


@pytest.mark.parametrize(("verb", "state"), ILLEGAL)
async def test_illegal_transition_is_refused_and_changes_nothing(
    store: Store, verb: str, state: str
) -> None:
    job_id = await _job_in(store, state)
    audited = len(await audit_of(store, job_id))
    with pytest.raises(IllegalTransition, match=f"cannot {verb} a job that is {state}"):
        if verb == "reprocess":
            await store.jobs.reprocess(job_id, FinishedItems(DONE), "tester")
        else:
            await getattr(store.jobs, verb)(job_id, "tester")
    assert await state_of(store, job_id) == state
    assert len(await audit_of(store, job_id)) == audited


@pytest.mark.parametrize("verb", ["pause", "resume", "cancel"])
async def test_unknown_job_is_named(store: Store, verb: str) -> None:
    with pytest.raises(UserError, match="there is no job 4711"):
        await getattr(store.jobs, verb)(4711, "tester")


async def test_resuming_a_job_that_is_done_points_to_reprocess(store: Store) -> None:
    job_id = await finished_job(store, DONE)
    with pytest.raises(UserError, match="nothing left to do"):
        await store.jobs.resume(job_id, "tester")
    assert await state_of(store, job_id) is JobState.DONE


async def test_resume_continues_where_a_failed_discovery_stopped(store: Store) -> None:
    job_id = await make_job(store)
    stream = await lease_stream(store, job_id)
    await ingest(store, stream, records(2))
    cursor = stream.cursor
    await store.ingest.fail_stream(stream, "the source moved")
    await work_off(store, job_id)
    assert await store.outcomes.complete(job_id) is JobState.FAILED
    assert (await store.reads.job(job_id)).error == "the source moved"
    await store.jobs.resume(job_id, "tester")
    job = await store.reads.job(job_id)
    assert (job.error, job.discovered_at, job.finished_at) == (None, None, None)
    again = await lease_stream(store, job_id)
    assert again.cursor == cursor
    await ingest(store, again, records(1), end=True)
    await work_off(store, job_id)
    assert await store.outcomes.complete(job_id) is JobState.DONE


async def test_failed_job_whose_source_went_to_another_job_cannot_end_well(store: Store) -> None:
    job_id = await make_job(store, "site")
    await store.ingest.fail_stream(await lease_stream(store, job_id), "gone")
    assert await store.outcomes.complete(job_id) is JobState.FAILED
    await make_job(store, "site")
    with pytest.raises(UserError, match="nothing left to do"):
        await store.jobs.resume(job_id, "tester")
    assert await state_of(store, job_id) is JobState.FAILED


async def test_every_state_change_is_in_the_audit_log(store: Store) -> None:
    job_id = await filled_job(store, 1)
    await store.jobs.pause(job_id, "anna")
    await store.jobs.resume(job_id, "ben")
    await work_off(store, job_id)
    await store.outcomes.complete(job_id)
    await store.jobs.reprocess(job_id, FinishedItems(DONE), "carl")
    await store.jobs.cancel(job_id, "dora")
    audit = [(entry["actor"], entry["action"]) for entry in await audit_of(store, job_id)]
    assert audit == [
        ("tester", "start"), ("anna", "pause"), ("ben", "resume"), ("engine", "finish"),
        ("carl", "reprocess"), ("dora", "cancel"),
    ]  # fmt: skip


async def test_statuses_of_a_fresh_job_are_pending_and_processing_under_a_lease(
    store: Store,
) -> None:
    job_id = await filled_job(store, 3)
    held = await claim_one(store, job_id, 1)
    assert await status_counts(store, job_id) == {"PENDING": 2, "PROCESSING": 1}
    processing = [item.seq for item in await items_of(store, job_id, [ItemStatus.PROCESSING])]
    assert processing == [held.rows[0][0]]


async def test_kill_switch_stops_claims_and_streams_and_says_so(store: Store) -> None:
    stopped = await filled_job(store, 2, pipeline="stopped")
    other = await filled_job(store, 2, pipeline="other")
    assert await store.jobs.switch("pipeline:stopped", True, "tester", "costs") is True
    assert await store.jobs.switch("pipeline:stopped", True, "tester") is False
    assert await claim(store, stopped) == []
    assert await store.reads.job_controls([stopped, other]) == {
        stopped: (JobState.RUNNING, "pipeline:stopped"),
        other: (JobState.RUNNING, None),
    }
    runnable = await store.reads.runnable_jobs(["stopped", "other"])
    assert [row[0] for row in runnable] == [other]
    assert await work_off(store, other) == 2
    assert [entry["reason"] for entry in await store.reads.kill_switches()] == ["costs"]
    assert await store.jobs.switch("pipeline:stopped", False, "tester") is True
    assert await store.jobs.switch("pipeline:stopped", False, "tester") is False
    assert await work_off(store, stopped) == 2
    acts = await fetch(store, "select action, subject from audit where job_id is null order by id")
    assert [tuple(row) for row in acts] == [
        ("kill_switch.on", "pipeline:stopped"), ("kill_switch.off", "pipeline:stopped"),
    ]  # fmt: skip


@pytest.mark.parametrize("scope", ["all", "pipeline:demo", "source:site"])
async def test_kill_switch_keeps_streams_from_being_walked(store: Store, scope: str) -> None:
    job_id = await make_job(store, "site")
    await store.jobs.switch(scope, True, "tester")
    assert await store.ingest.lease_stream(job_id, "walker") is None
    assert await store.reads.discovering_jobs(["demo"]) == []
    await store.jobs.switch(scope, False, "tester")
    assert await store.reads.discovering_jobs(["demo"]) == [(job_id, "UPLOAD", "local")]
    await lease_stream(store, job_id)


async def test_sweeper_finds_what_a_killed_cancel_left(store: Store) -> None:
    job_id = await filled_job(store, 5)
    await store.database.write(
        "test",
        lambda tx: tx.run("set_job_state", {"job_id": job_id, "state": "CANCELLED", "error": None}),
    )
    assert await claim(store, job_id) == []
    assert await store.reads.cancelled_jobs_with_ranges() == [job_id]
    await store.jobs.drop_ranges(job_id)
    assert await store.reads.cancelled_jobs_with_ranges() == []


async def test_ingest_into_a_job_that_is_gone_is_a_lost_lease(store: Store) -> None:
    job_id = await make_job(store)
    stream = await lease_stream(store, job_id)
    stream.job_id = 4711
    with pytest.raises(LeaseLost):
        await store.ingest.ingest(stream, page_of(stream, records(1)), "walker")
