"""Shows what `holdfast work --until-idle` waits for: once, and again when it changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, replace

from holdfast.cli.output import errors, reason_text
from holdfast.clock import Clock
from holdfast.errors import DatabaseGone, NotThere
from holdfast.features.console import open_console
from holdfast.features.jobs.why import Reason, why_not_running
from holdfast.kernel import Store
from holdfast.model import JobState

_LOOK_SECONDS = 2.0
#: How long until a later time of the same reason is shown again.
_AGAIN_SECONDS = 60.0
_MOST_JOBS = 5
_LEASED = "leased by"


@dataclass(frozen=True, slots=True)
class WaitedFor:
    """The jobs that keep a worker from ending. `own`: names of workers whose leases are its own."""

    store: Store
    pipelines: Collection[str]
    only_job: int | None
    backfill_enabled: bool
    own: Callable[[], Collection[str]]


class Waiting:
    def __init__(self, jobs: WaitedFor, clock: Clock) -> None:
        self._jobs = jobs
        self._console = open_console(jobs.store)
        self._clock = clock
        self._said: dict[int, tuple[Reason, float]] = {}

    async def show(self) -> None:
        """Shows the reasons until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            with suppress(DatabaseGone):
                await self.look()

    async def look(self) -> None:
        jobs = await self._unfinished()
        for job_id in jobs[:_MOST_JOBS]:
            with suppress(NotThere):  # deleted since
                reason = await self._reason(job_id)
                if reason is not None and self._is_news(job_id, reason):
                    words = reason_text(reason.kind, reason.text, reason.until)
                    errors.print(f"Waiting for job {job_id}: {words}", markup=False)
        self._said = {job_id: self._said[job_id] for job_id in jobs if job_id in self._said}

    async def show_paused(self) -> None:
        """Shows paused jobs, which it does not wait for."""
        paused = await self._console.jobs.page(
            None, _MOST_JOBS, None, [JobState.PAUSED], list(self._jobs.pipelines)
        )
        for counted in paused:
            if self._jobs.only_job in (None, counted.job.id) and counted.counters.open:
                text = f"Not waiting for job {counted.job.id}, which is paused"
                errors.print(f"{text}: holdfast resume {counted.job.id}", markup=False)

    async def _unfinished(self) -> list[int]:
        jobs = await self._jobs.store.reads.unfinished_jobs(list(self._jobs.pipelines))
        return sorted(job_id for job_id in jobs if self._jobs.only_job in (None, job_id))

    async def _reason(self, job_id: int) -> Reason | None:
        """Returns why the job waits; None while its own workers process it."""
        job = await self._jobs.store.reads.job(job_id)
        reason = await why_not_running(self._console, job, self._jobs.backfill_enabled)
        if reason is None or reason.kind != _LEASED:
            return reason
        own = self._jobs.own()
        others = [name for name in reason.text.split(", ") if name not in own]
        return replace(reason, text=", ".join(others)) if others else None

    def _is_news(self, job_id: int, reason: Reason) -> bool:
        now = self._clock.monotonic()
        before, said_at = self._said.get(job_id, (None, 0.0))
        if before is not None and (before.kind, before.text) == (reason.kind, reason.text):
            later = reason.kind != _LEASED and before.until != reason.until
            if not later or now - said_at < _AGAIN_SECONDS:
                return False
        self._said[job_id] = reason, now
        return True
