"""The order of lanes: urgent first, by weight, and nobody starves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

from holdfast.kernel.pace.fair_order import FairOrder
from holdfast.kernel.pace.lanes import LaneTurns
from holdfast.model import Lane

ALL = tuple(Lane)


def taken(turns: LaneTurns, waiting: Collection[Lane], count: int) -> Counter[str]:
    """How many of the turns each class got, by the names of its lanes."""
    return Counter("+".join(sorted(turns.choose(waiting))) for _ in range(count))


def test_turns_are_shared_by_weight_while_all_wait() -> None:
    assert taken(LaneTurns(), ALL, 130) == {"SENTINEL": 80, "EVENT+UPLOAD": 40, "BACKFILL": 10}


def test_most_urgent_is_first_and_the_last_waits_a_bounded_time() -> None:
    turns = LaneTurns()
    order = ["+".join(sorted(turns.choose(ALL))) for _ in range(13)]
    assert order[:2] == ["SENTINEL", "EVENT+UPLOAD"]
    assert "BACKFILL" in order


def test_lane_alone_gets_every_turn() -> None:
    assert taken(LaneTurns(), [Lane.BACKFILL], 5) == {"BACKFILL": 5}
    assert taken(LaneTurns(), [Lane.EVENT, Lane.UPLOAD], 5) == {"EVENT+UPLOAD": 5}


def test_urgent_work_that_arrives_is_next_however_long_others_worked() -> None:
    turns = LaneTurns()
    taken(turns, [Lane.BACKFILL, Lane.UPLOAD], 57)
    assert turns.choose([Lane.BACKFILL, Lane.SENTINEL, Lane.UPLOAD]) == {Lane.SENTINEL}


def test_lane_that_had_nothing_to_do_saves_no_turns_up() -> None:
    turns = LaneTurns()
    taken(turns, [Lane.SENTINEL, Lane.UPLOAD], 120)
    assert taken(turns, ALL, 13)["BACKFILL"] <= 2


class Job(NamedTuple):
    job_id: int
    lane: Lane
    owner_id: str = "tester"


def served(order: FairOrder, jobs: Sequence[Job], count: int) -> Counter[int]:
    return Counter(order.choose(jobs).job_id for _ in range(count))


def test_jobs_are_chosen_by_lane_and_of_one_lane_in_turn() -> None:
    jobs = [Job(number, lane) for number, lane in enumerate([*Lane, Lane.BACKFILL])]
    counts = served(FairOrder(), jobs, 26)
    by_lane = sorted((job.lane, counts[job.job_id]) for job in jobs)
    assert by_lane == [
        (Lane.BACKFILL, 1), (Lane.BACKFILL, 1), (Lane.EVENT, 4), (Lane.SENTINEL, 16),
        (Lane.UPLOAD, 4),
    ]  # fmt: skip


def test_owner_with_many_jobs_gets_no_more_turns_than_one_with_a_single_job() -> None:
    many = [Job(number, Lane.UPLOAD, "ann") for number in range(9)]
    counts = served(FairOrder(), [*many, Job(100, Lane.UPLOAD, "bob")], 18)
    assert counts[100] == 9
    assert all(counts[job.job_id] == 1 for job in many)


def test_job_that_comes_later_is_served_next() -> None:
    order, old = FairOrder(), Job(1, Lane.UPLOAD, "ann")
    served(order, [old], 50)
    assert order.choose([old, Job(2, Lane.UPLOAD, "bob")]).job_id == 2


def test_each_of_very_many_jobs_has_its_turn() -> None:
    jobs = [Job(number, Lane.UPLOAD, f"owner {number}") for number in range(1, 1501)]
    assert served(FairOrder(), jobs, 3000) == {job.job_id: 2 for job in jobs}
