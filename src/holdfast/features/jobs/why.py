"""Explains the one reason why a job is not moving, in the words of `holdfast show`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from holdfast.kernel.record.streams import StreamView
from holdfast.model import ItemStatus, Job, JobState, Lane, StreamState

if TYPE_CHECKING:
    from holdfast.features.console import Console


@dataclass(frozen=True, slots=True)
class Reason:
    kind: str
    text: str
    until: datetime | None = None


async def why_not_running(
    console: Console, job: Job, backfill_enabled: bool = True
) -> Reason | None:
    """Returns the reason; None if nothing is in the way: a worker will take the job, or nothing is
    left."""
    if job.state is JobState.DELETING:
        left = await console.jobs.left_to_delete(job.id)
        return Reason("deleting", f"being deleted: about {left.items:,} of {left.of:,} items left")
    if job.state is JobState.PAUSED:
        return Reason("paused", f"paused; continue with: holdfast resume {job.id}")
    if job.state is JobState.FAILED:
        return Reason("discovery failed", f"discovery failed: {job.error}")
    if job.pruned_at is not None:
        return Reason("pruned", "its items were deleted: a later pass was verified")
    capped = await _capped(console, job)
    if job.state in (JobState.DONE, JobState.CANCELLED):
        return capped if job.state is JobState.DONE else None
    return (
        await _switched_off(console, job, backfill_enabled)
        or await _discovery(console, job)
        or await _waiting(console, job)
        or capped
    )


async def _switched_off(console: Console, job: Job, backfill_enabled: bool) -> Reason | None:
    if job.lane is Lane.BACKFILL and not backfill_enabled:
        return Reason("kill switch", "BACKFILL_ENABLED is false where this command runs")
    sources = {f"source:{stream.source}" for stream in await console.store.streams.of_job(job.id)}
    covering = {"all", f"pipeline:{job.pipeline}"} | sources
    for switch in await console.store.reads.kill_switches():
        if switch["scope"] in covering:
            why = f" ({switch['reason']})" if switch["reason"] else ""
            text = f"kill switch {switch['scope']} is on since {switch['since']:%H:%M}{why}"
            return Reason("kill switch", text)
    return None


async def _discovery(console: Console, job: Job) -> Reason | None:
    streams = await console.store.streams.of_job(job.id)
    for stream in streams:
        if stream.state == StreamState.FAILED:
            return Reason("discovery failed", f"{stream.source}: {stream.error}")
    running = [stream for stream in streams if stream.state == StreamState.RUNNING]
    if not running or any(stream.leased for stream in running):
        return None
    if any(stream.due for stream in running):
        if job.reference and job.file_id is None:
            text = f"the rest of the file is not being read; continue with: {_run(job)}"
            return Reason("no live worker", text)
        return await _no_live_worker(console, job)
    return await _waiting_streams(console, job, running)


async def _waiting_streams(console: Console, job: Job, streams: list[StreamView]) -> Reason | None:
    """Returns what the stream that is read next waits for.

    A source that has nothing new holds nothing up while items are open."""
    stream = min(streams, key=lambda waiting: (waiting.error is None, waiting.available_at))
    if stream.error is not None:
        return Reason("retry at", f"{stream.source}: {stream.error}", stream.available_at)
    if await console.ranges.next_due(job.id) is not None:
        return None
    text = f"{stream.source} waits for {stream.waiting_for or 'its turn'}"
    return Reason("waiting until", text, stream.available_at)


async def _waiting(console: Console, job: Job) -> Reason | None:
    holders = await console.ranges.lease_holders(job.id)
    due = await console.ranges.next_due(job.id)
    if due is None:
        return _leased(holders)
    if not due.due:
        if holders:
            return None
        if due.waiting_for:
            return Reason("gate closed until", due.waiting_for, due.available_at)
        latest = await console.ranges.latest_retry(job.id)
        if not latest:
            return Reason("due at", "all open items are due later", due.available_at)
        text = f"all open items wait to be tried again; the latest for {latest}"
        return Reason("retry at", text, due.available_at)
    return await _no_live_worker(console, job) or _leased(holders)


async def _no_live_worker(console: Console, job: Job) -> Reason | None:
    workers = await console.store.workers.live()
    if any(job.pipeline in worker["pipelines"] for worker in workers):
        return None
    file = job.reading.pipeline_file
    named = job.pipeline if file is None else Path(file).name
    text = f"no live worker has the pipeline {job.pipeline}; start one: holdfast work {named}"
    return Reason("no live worker", text)


def _leased(holders: list[str]) -> Reason | None:
    return Reason("leased by", ", ".join(holders)) if holders else None


def _run(job: Job) -> str:
    """Returns the command that continues: only a command reads a file that is not in the file
    store."""
    return f"holdfast run PIPELINE.py {quote(str(job.reference))}"


async def _capped(console: Console, job: Job) -> Reason | None:
    for stream in await console.store.streams.of_job(job.id):
        if stream.state == StreamState.CAPPED:
            in_a_file = job.reference and job.file_id is None
            again = _run(job) if in_a_file else f"holdfast resume {job.id}"
            text = (
                f"{stream.source} stopped at the cap after {stream.records_count:,} records; "
                f"continue with: {again} --max-items N"
            )
            return Reason("cap reached", text)
    return None


async def why_item_waits(console: Console, job: Job, item: Mapping[str, Any]) -> Reason | None:
    """Returns why one item is not being processed now; None for one that is, or that is
    finished."""
    if item["status"] not in (None, ItemStatus.PENDING) or job.state is JobState.CANCELLED:
        return None
    if item["range_id"] is not None:
        waiting = await console.ranges.range(item["range_id"])
        if waiting is not None and not waiting.due:
            if waiting.waiting_for:
                return Reason("gate closed until", waiting.waiting_for, waiting.available_at)
            text = f"it failed and is tried again: {item['error_message']}"
            return Reason("retry at", text, waiting.available_at)
    reason = await why_not_running(console, job)
    return reason or Reason("waiting", "other items of the job come before it")
