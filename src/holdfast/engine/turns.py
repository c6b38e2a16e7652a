"""How a worker learns what to do next: the contract, and the implementation without a broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from holdfast.clock import Clock
from holdfast.engine.pace.lanes import LaneTurns
from holdfast.model import Lane, SliceKind
from holdfast.pipeline import Pipeline
from holdfast.store import Store


@dataclass(frozen=True, slots=True)
class Places:
    """How many more streams a worker can walk, and how many of them may be files."""

    free: int
    files: int


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """A slice of a job to be done now. `trace` is that of the message which requested it."""

    kind: SliceKind
    job_id: int
    trace: str | None = None


#: Whether this worker may run a job, by its id and lane.
MayRun = Callable[[int, str], bool]


class Turns(Protocol):
    """Each turn that `next` returns is given back to `ended`."""

    #: whether it listens to messages; others then send them for this worker's pipelines
    listens: bool

    async def next(self, seconds: float, places: Places) -> Turn | None:
        """The next turn, after at most `seconds`; discovery only if there is a place for it."""
        ...

    def hear(self, job_id: int | None) -> None:
        """A job has new items; None: perhaps one has."""
        ...

    async def rest(self, seconds: float) -> None:
        """Waits, but not longer than until there is news."""
        ...

    async def others_wait(self, turn: Turn) -> bool:
        """Whether another job, or another stream, needs the worker, now that the slice's time is
        up."""
        ...

    async def ended(self, turn: Turn, worked: bool) -> None:
        """The slice is over; never raises. `worked` is False if nothing could be claimed."""
        ...

    async def close(self) -> None: ...


class PollingTurns:
    """Looks into the database, at once after news and otherwise now and then; lanes by weight, jobs
    of a lane in turn, the least recently served first."""

    listens = False

    def __init__(
        self, store: Store, pipelines: Mapping[str, Pipeline], may_run: MayRun, clock: Clock
    ) -> None:
        self._store = store
        self._names = list(pipelines)
        self._discovering = [name for name, pipeline in pipelines.items() if pipeline.discovers]
        self._may_run = may_run
        self._slices = _JobTurns(clock)
        self._walks = _JobTurns(clock)
        self._news = asyncio.Event()
        self._heard: dict[int, None] = {}
        self._may_skip = True
        self._ours: set[int] = set()  # jobs that were ours to run when last looked at

    async def next(self, seconds: float, places: Places) -> Turn | None:
        self._news.clear()
        turn = self._next_heard() or await self._next_walk(places) or await self._next_slice()
        if turn is None:
            await self.rest(seconds)
        return turn

    def hear(self, job_id: int | None) -> None:
        if job_id in self._ours:
            self._heard[job_id] = None
        self._news.set()

    async def rest(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()

    async def others_wait(self, turn: Turn) -> bool:
        if turn.kind is SliceKind.DISCOVER:
            return bool(await self._discovering_jobs(files=True))
        return any(job_id != turn.job_id for job_id, _ in await self._runnable())

    async def ended(self, turn: Turn, worked: bool) -> None:
        """Nothing to announce: polling finds what is left."""

    async def close(self) -> None:
        """Holds nothing."""

    def _next_heard(self) -> Turn | None:
        """A job with new items needs no look; every other time there is one, for other work."""
        self._may_skip = not self._may_skip
        if self._may_skip or not self._heard:
            self._heard.clear()
            return None
        return Turn(SliceKind.PROCESS, self._heard.popitem()[0])

    async def _next_walk(self, places: Places) -> Turn | None:
        if not places.free:
            return None
        waiting = await self._discovering_jobs(files=places.files > 0)
        if not waiting:
            return None
        return Turn(SliceKind.DISCOVER, self._walks.choose(waiting))

    async def _discovering_jobs(self, files: bool) -> list[tuple[int, Lane, str]]:
        reading = self._names if files else ()
        jobs = await self._store.reads.discovering_jobs(self._discovering, reading)
        return [
            (job_id, Lane(lane), owner)
            for job_id, lane, owner in jobs
            if self._may_run(job_id, lane)
        ]

    async def _next_slice(self) -> Turn | None:
        runnable = await self._runnable()
        if not runnable:
            return None
        jobs = [(job_id, lane, "") for job_id, lane in runnable]
        return Turn(SliceKind.PROCESS, self._slices.choose(jobs))

    async def _runnable(self) -> list[tuple[int, Lane]]:
        jobs = await self._store.reads.runnable_jobs(self._names)
        runnable = [(job_id, Lane(lane)) for job_id, _, lane in jobs if self._may_run(job_id, lane)]
        self._ours.update(job_id for job_id, _ in runnable)
        return runnable


class _JobTurns:
    """Whose turn it is among jobs: of a lane, the owner's that was least recently served."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lanes = LaneTurns()
        self._served: dict[int | str, float] = {}

    def choose(self, jobs: Sequence[tuple[int, Lane, str]]) -> int:
        lanes = self._lanes.choose([lane for _, lane, _ in jobs])
        eligible = [(job_id, owner) for job_id, lane, owner in jobs if lane in lanes]

        def last_served(job: tuple[int, str]) -> tuple[float, float, int]:
            job_id, owner = job
            return self._served.get(owner, 0.0), self._served.get(job_id, 0.0), job_id

        job_id, owner = min(eligible, key=last_served)
        self._served[job_id] = self._served[owner] = self._clock.monotonic()
        return job_id
