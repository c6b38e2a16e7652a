"""A machine that drives two jobs through the store's verbs at random, beside a simple model.

The model knows for each item whether it is open and how it ended, which leases are held and
which are lost. What the store may decide freely (how ranges are cut) is read back from it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from holdfast.errors import IllegalTransition, LeaseLost, UserError
from holdfast.features.console import open_console
from holdfast.kernel import Claimed, Settlement, Store, StreamLease
from holdfast.kernel.database.chunks import FinishedItems
from holdfast.model import FINAL, ItemStatus, JobState, next_job_state
from tests.store.checks import (
    MEGABYTES,
    assert_sound,
    fetch,
    ingest,
    lease_stream,
    lose,
    make_job,
    outcome_of,
    records,
    statuses,
)

T = TypeVar("T")
OPEN = ItemStatus.PENDING
ENDS = [ItemStatus.DONE, ItemStatus.ERROR, ItemStatus.NOT_FOUND, ItemStatus.SKIPPED]
KINDS = [*ENDS, OPEN]
LIVE = (JobState.RUNNING, JobState.PAUSED)

which = st.integers(0, 1)
workers = st.sampled_from(["one", "two"])
choices = st.integers(0, 1000)
sizes = st.integers(1, 8)
outcome_kinds = st.lists(st.sampled_from(KINDS), min_size=1, max_size=6)


@dataclass
class Held:
    """A lease, what was read under it and not handed in yet, and who has it."""

    claimed: Claimed
    worker: str
    rows: dict[int, Sequence[Any]]


@dataclass
class JobModel:
    id: int
    stream: StreamLease
    state: JobState = JobState.RUNNING
    ended: bool = False
    items: dict[int, ItemStatus] = field(default_factory=dict)
    held: list[Held] = field(default_factory=list)
    lost: list[Held] = field(default_factory=list)
    sent: Settlement | None = None
    lone_deaths: Counter[int] = field(default_factory=Counter)

    def leased(self) -> set[int]:
        return {seq for held in self.held for seq in held.rows}

    def with_status(self, status: ItemStatus) -> list[int]:
        return [seq for seq, found in self.items.items() if found is status]


class StoreMachine(RuleBasedStateMachine):
    def __init__(self, loop: asyncio.AbstractEventLoop, store: Store) -> None:
        super().__init__()
        self.loop = loop
        self.store = store
        self.jobs: list[JobModel] = []
        self.steps = 0

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(coroutine)

    @initialize(counts=st.tuples(st.integers(9, 20), st.integers(1, 9)), end=st.booleans())
    def make_jobs(self, counts: tuple[int, int], end: bool) -> None:
        for count in counts:
            job_id = self.run(make_job(self.store))
            job = JobModel(job_id, self.run(lease_stream(self.store, job_id)))
            self.jobs.append(job)
            self._ingest(job, count, end)

    @rule(number=which, count=st.integers(0, 12), end=st.booleans())
    def ingest_page(self, number: int, count: int, end: bool) -> None:
        self._ingest(self.jobs[number], count, end)

    def _ingest(self, job: JobModel, count: int, end: bool) -> None:
        if job.ended:
            return
        page = records(count)
        if job.state not in LIVE:
            try:
                self.run(ingest(self.store, job.stream, page))
            except LeaseLost:
                return
            raise AssertionError("a job that is over took a page")
        taken = self.run(ingest(self.store, job.stream, page, end=end))
        assert taken.accepted == count
        job.ended = end
        new = set(self.run(statuses(self.store, job.id))) - set(job.items)
        assert len(new) == count
        job.items |= dict.fromkeys(sorted(new), OPEN)

    @rule(number=which, worker=workers, size=sizes)
    def claim(self, number: int, worker: str, size: int) -> None:
        self._claim(self.jobs[number], worker, size)

    def _claim(self, job: JobModel, worker: str, size: int) -> None:
        claims = self.run(self.store.leases.claim(job.id, worker, size, MEGABYTES))
        self._see_lost(job)
        self._see_crashed(job)
        if job.state is not JobState.RUNNING:
            assert claims == []
            return
        free = set(job.with_status(OPEN)) - job.leased()
        assert claims or not free, "open items of a running job can be claimed"
        for claimed in claims:
            rows = {row[0]: row for row in claimed.rows}
            assert rows.keys() <= free, "only open items that nobody holds are claimed"
            free -= rows.keys()
            job.held.append(Held(claimed, worker, rows))
        assert len(claims) == 1 or not any(claimed.lease.alone for claimed in claims)

    @rule(number=which, worker=workers, size=sizes, kinds=outcome_kinds)
    def work(self, number: int, worker: str, size: int, kinds: list[ItemStatus]) -> None:
        """Claims and settles at once, as workers mostly do."""
        job = self.jobs[number]
        before = len(job.held)
        self._claim(job, worker, size)
        for held in job.held[before:]:
            self._settle(job, held, _outcomes(list(held.rows.values()), kinds), last=True)

    @rule(number=which, kinds=st.lists(st.sampled_from(ENDS), min_size=1, max_size=4))
    def work_off(self, number: int, kinds: list[ItemStatus]) -> None:
        """Works all that is free, and ends the job if that was all of it."""
        job = self.jobs[number]
        before = -1
        while before != len(job.with_status(OPEN)):
            before = len(job.with_status(OPEN))
            self.work(number=number, worker="one", size=100, kinds=kinds)
        self.complete(number=number)

    @precondition(lambda self: self._held())
    @rule(choice=choices, kinds=outcome_kinds)
    def settle(self, choice: int, kinds: list[ItemStatus]) -> None:
        job, held = _pick(self._held(), choice)
        self._settle(job, held, _outcomes(list(held.rows.values()), kinds), last=True)

    @precondition(lambda self: self._held())
    @rule(choice=choices, count=st.integers(1, 4), kinds=outcome_kinds)
    def settle_part(self, choice: int, count: int, kinds: list[ItemStatus]) -> None:
        job, held = _pick(self._held(), choice)
        self._settle(job, held, _outcomes(list(held.rows.values())[:count], kinds), last=False)

    def _held(self) -> list[tuple[JobModel, Held]]:
        return [(job, held) for job in self.jobs for held in job.held]

    def _lost(self) -> list[tuple[JobModel, Held]]:
        return [(job, held) for job in self.jobs for held in job.lost]

    def _settle(self, job: JobModel, held: Held, outcomes: list[Any], last: bool) -> None:
        settlement = Settlement(replace(held.claimed.lease), outcomes, last)
        lost = self.run(self.store.outcomes.settle(job.id, held.worker, [settlement]))
        assert bool(lost) == (job.state not in LIVE)
        if lost:
            job.held.remove(held)
            return
        held.claimed.lease.settled += 1
        job.sent = settlement
        for outcome in outcomes:
            assert job.items[outcome.seq] is OPEN, "nothing is settled twice"
            job.items[outcome.seq] = outcome.status
            del held.rows[outcome.seq]
        if last:
            job.held.remove(held)

    @precondition(lambda self: any(job.sent for job in self.jobs))
    @rule(choice=choices)
    def send_again(self, choice: int) -> None:
        job, sent = _pick([(job, job.sent) for job in self.jobs if job.sent], choice)
        self.run(self.store.outcomes.settle(job.id, "one", [sent]))

    @precondition(lambda self: self._lost())
    @rule(choice=choices, last=st.booleans())
    def settle_late(self, choice: int, last: bool) -> None:
        job, held = _pick(self._lost(), choice)
        outcomes = _outcomes(list(held.rows.values()), [ItemStatus.DONE])
        late = Settlement(held.claimed.lease, outcomes, last)
        lost = self.run(self.store.outcomes.settle(job.id, held.worker, [late]))
        assert lost == [held.claimed.lease]

    @precondition(lambda self: self._held())
    @rule(choice=choices)
    def release(self, choice: int) -> None:
        job, held = _pick(self._held(), choice)
        self.run(self.store.leases.release([held.claimed.lease]))
        job.held.remove(held)
        job.lost.append(held)

    @rule(worker=workers)
    def die(self, worker: str) -> None:
        self.run(lose(self.store, worker))
        self._see_deaths()
        assert not self._holds_anything(worker)

    @rule(number=which, worker=workers, other=workers)
    def die_and_be_followed(self, number: int, worker: str, other: str) -> None:
        self.run(lose(self.store, worker))
        self._claim(self.jobs[number], other, 5)
        self._see_deaths()
        assert other == worker or not self._holds_anything(worker)

    @rule(number=which, size=sizes, deaths=st.integers(2, 5))
    def die_of_it(self, number: int, size: int, deaths: int) -> None:
        """What is claimed first kills its worker, again and again."""
        for _ in range(deaths):
            self._claim(self.jobs[number], "doomed", size)
            self.run(self.store.workers.stop_worker("doomed"))
            self._see_deaths()
        assert not self._holds_anything("doomed")

    def _holds_anything(self, worker: str) -> bool:
        return any(held.worker == worker for job in self.jobs for held in job.held)

    def _see_deaths(self) -> None:
        for job in self.jobs:
            self._see_lost(job)
            self._see_crashed(job)

    def _see_lost(self, job: JobModel) -> None:
        """Leases that ran out and were taken: each of their items saw its worker die."""
        for held in [held for held in job.held if not self._is_live(held)]:
            job.held.remove(held)
            job.lost.append(held)
            if len(held.rows) == 1:
                job.lone_deaths[next(iter(held.rows))] += 1

    def _is_live(self, held: Held) -> bool:
        sql = "select 1 from ranges where token = :token"
        return bool(self.run(fetch(self.store, sql, token=held.claimed.lease.token)))

    def _see_crashed(self, job: JobModel) -> None:
        sql = "select seq from outcomes where job_id = :j and error_code = 'CRASHED'"
        for (seq,) in map(tuple, self.run(fetch(self.store, sql, j=job.id))):
            if job.items[seq] is OPEN:
                assert job.lone_deaths[seq] >= 3, "quarantined only after three deaths alone"
                job.items[seq] = ItemStatus.ERROR
                job.lone_deaths[seq] = 0

    @rule(number=which)
    def pause_and_resume(self, number: int) -> None:
        job = self.jobs[number]
        self._order(job, "pause")
        self._claim(job, "one", 5)
        self._order(job, "resume")

    @precondition(lambda self: all(job.state is not JobState.PAUSED for job in self.jobs))
    @rule(number=which)
    def pause(self, number: int) -> None:
        self._order(self.jobs[number], "pause")

    @rule(number=which)
    def resume(self, number: int) -> None:
        self._order(self.jobs[number], "resume")

    @precondition(lambda self: self.steps > 20)
    @rule(number=which)
    def cancel(self, number: int) -> None:
        job = self.jobs[number]
        self._order(job, "cancel")
        if job.state is JobState.CANCELLED:
            job.lost += job.held
            job.held = []

    def _order(self, job: JobModel, verb: str) -> None:
        try:
            expected = next_job_state(verb, job.state)
        except IllegalTransition:
            expected = None
        if verb == "resume" and job.state is JobState.RUNNING:
            expected = JobState.RUNNING
        if verb == "resume" and job.state is JobState.DONE:
            expected = None
        try:
            job.state = self.run(getattr(self.store.jobs, verb)(job.id, "tester"))
        except (IllegalTransition, UserError):
            assert expected is None
        else:
            assert job.state is expected

    @rule(number=which, status=st.sampled_from(sorted(FINAL)))
    def reprocess(self, number: int, status: ItemStatus) -> None:
        job = self.jobs[number]
        before = self.run(self.store.jobs.now())
        try:
            opened = 0
            items = FinishedItems(status, until=before)
            while count := self.run(self.store.jobs.reprocess(job.id, items, "tester")).opened:
                opened += count
        except IllegalTransition:
            assert job.state is JobState.CANCELLED
            return
        self._open_again(job, job.with_status(status), opened)

    @precondition(lambda self: self._letters())
    @rule(choice=choices)
    def replay(self, choice: int) -> None:
        job, letter = _pick(self._letters(), choice)
        self.run(self.store.jobs.act_on_dead_letter(letter["id"], True, "tester"))
        finished = [letter["seq"]] if job.items[letter["seq"]] in FINAL else []
        self._open_again(job, finished, len(finished))

    def _letters(self) -> list[tuple[JobModel, dict[str, Any]]]:
        open_letters = self.run(open_console(self.store).dead_letters.oldest("OPEN", 10_000))
        return [
            (job, letter)
            for job in self.jobs
            for letter in open_letters
            if letter["job_id"] == job.id and job.state is not JobState.CANCELLED
        ]

    def _open_again(self, job: JobModel, seqs: list[int], opened: int) -> None:
        assert opened == len(seqs)
        job.items |= dict.fromkeys(seqs, OPEN)
        for seq in seqs:
            job.lone_deaths[seq] = 0
        if opened:
            job.state = next_job_state("reprocess", job.state)

    @rule(number=which)
    def complete(self, number: int) -> None:
        job = self.jobs[number]
        ranges = self.run(open_console(self.store).ranges.count(job.id))
        state = self.run(self.store.outcomes.complete(job.id))
        over = job.state is JobState.RUNNING and job.ended and not ranges
        assert (state is JobState.DONE) == over
        if state is not None:
            assert not job.with_status(OPEN), "a job with open items is not done"
            job.state = state

    @invariant()
    def store_equals_model(self) -> None:
        self.steps += 1
        for job in self.jobs:
            found = {
                seq: OPEN if status is ItemStatus.PROCESSING else status
                for seq, status in self.run(statuses(self.store, job.id)).items()
            }
            cancelled = job.state is JobState.CANCELLED
            assert found == {
                seq: ItemStatus.SKIPPED if cancelled and status is OPEN else status
                for seq, status in job.items.items()
            }
            assert self.run(self.store.reads.job(job.id)).state is job.state

    @invariant()
    def promises_hold(self) -> None:
        for job in self.jobs:
            self.run(assert_sound(self.store, job.id))

    def teardown(self) -> None:
        for job in self.jobs:
            if job.state in (JobState.RUNNING, JobState.PAUSED):
                self.run(self.store.jobs.cancel(job.id, "tester"))


def _pick(choices: list[T], choice: int) -> T:
    return choices[choice % len(choices)]


def _outcomes(rows: list[Sequence[Any]], kinds: list[ItemStatus]) -> list[Any]:
    return [outcome_of(row, kinds[place % len(kinds)]) for place, row in enumerate(rows)]
