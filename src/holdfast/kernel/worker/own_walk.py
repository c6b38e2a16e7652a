"""Reads the file of `holdfast run`, which no worker has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from holdfast.errors import DatabaseGone
from holdfast.kernel.record.discover import Discovery, LeasedStream, WalkParts
from holdfast.kernel.record.file_pages import file_pages
from holdfast.kernel.record.pages import Yielded
from holdfast.kernel.worker.chores import Chore, begin
from holdfast.kernel.worker.hands import REST, Hands
from holdfast.kernel.worker.patience import patiently
from holdfast.model import JobState, StreamState
from holdfast.pipeline import Pipeline
from holdfast.tables.files import TableFile
from holdfast.tasks import end_tasks

_AGAIN_SECONDS = 0.5
_HEARTBEAT_SECONDS = 2.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OwnFile:
    """Sources for which every stream is this file, and nothing holds it back."""

    file: TableFile

    def pages(self, stream: LeasedStream) -> AsyncGenerator[Yielded]:
        assert stream.pace is not None
        opening = nullcontext(self.file)
        return file_pages(opening, stream.pipeline, stream.job, stream.lease, stream.pace)

    async def wait_seconds(self) -> int | None:
        return None


class OwnWalk:
    """Reads the stream of a job over a file until all rows are ingested, the job accepts no more,
    or it is stopped."""

    def __init__(
        self, parts: WalkParts, worker: str, file: TableFile, stopped: asyncio.Event
    ) -> None:
        self._parts = parts
        self._store = parts.store
        self._worker = worker
        self._discovery = Discovery(parts, OwnFile(file), worker, slice_seconds=0.0)
        self._stopped = stopped
        self._token = ""  # of the last walk
        self._hands = Hands(parts.store, worker, self._held)

    async def run(self, pipeline: Pipeline, job_id: int) -> None:
        """Reads the stream to its end.

        The worker must be registered; this gives signs of life for it."""
        living = begin(self._chores(), self._parts.clock, self._parts.log)
        try:
            with suppress(DatabaseGone):  # only once it is stopped
                while not await self._patiently(partial(self._is_over, pipeline, job_id)):
                    await self._pause(_AGAIN_SECONDS)
        finally:
            await end_tasks(living)

    def _chores(self) -> list[Chore]:
        """Returns what keeps the walk alive.

        A lease whose answer was lost is in our name without being used: it is freed."""
        return [
            Chore("heartbeat", _HEARTBEAT_SECONDS, partial(self._store.workers.beat, self._worker)),
            Chore("hands", _HEARTBEAT_SECONDS, self._hands.compare, rest=REST),
        ]

    def _held(self) -> set[str]:
        return {self._token} | self._store.ingest.in_flight

    async def _is_over(self, pipeline: Pipeline, job_id: int) -> bool:
        """Reads the stream if it is free; returns whether that is over.

        It is not free while another process reads the same file, or while the job has to wait."""
        leased = await self._discovery.lease(pipeline, await self._store.reads.job(job_id))
        if leased is not None:
            self._token = leased.lease.token
            await self._discovery.walk(leased, self._stopped.is_set, _nobody_waits)
        return self._stopped.is_set() or not await self._has_more(job_id)

    async def _has_more(self, job_id: int) -> bool:
        job = await self._store.reads.job(job_id)
        if job.state is not JobState.RUNNING:
            return False
        streams = await self._store.streams.of_job(job_id)
        return any(stream.state == StreamState.RUNNING for stream in streams)

    async def _patiently(self, action: Callable[[], Awaitable[T]]) -> T:
        return await patiently(
            action,
            self._parts.log,
            self._parts.rng,
            give_up=self._stopped.is_set,
            pause=self._pause,
        )

    async def _pause(self, seconds: float) -> None:
        # Not wait_for, which may swallow a cancellation that arrives with the event.
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopped.wait()


async def _nobody_waits() -> bool:
    return False
