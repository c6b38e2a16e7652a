"""The order of lanes: urgent first, by weight, and nobody starves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

from holdfast.clock import SystemClock
from holdfast.engine.pace.lanes import LaneTurns
from holdfast.engine.turns import Places, PollingTurns
from holdfast.model import Lane, SliceKind
from holdfast.pipeline import Pipeline, pipeline
from holdfast.store import NewJob, NewStream, Store
from tests.store.checks import ingest, lease_stream, records

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


@pipeline(name="demo")
async def demo(row: Any, ctx: Any) -> Any:
    return row


async def test_worker_chooses_jobs_by_lane_and_of_one_lane_in_turn(store: Store) -> None:
    lanes = {}
    for number, lane in enumerate([*Lane, Lane.BACKFILL]):
        new = NewJob("demo", "a job", [NewStream(f"source {number}", "")], lane=lane)
        job_id = await store.jobs.create(new, "tester")
        await ingest(store, await lease_stream(store, job_id), records(1), end=True)
        lanes[job_id] = lane
    pipelines: dict[str, Pipeline] = {"demo": demo}
    turns = PollingTurns(store, pipelines, lambda job_id, lane: True, SystemClock())
    chosen: Counter[int] = Counter()
    for _ in range(26):
        turn = await turns.next(0, Places(0, 0))
        assert turn is not None and turn.kind is SliceKind.PROCESS
        chosen[turn.job_id] += 1
    by_lane = sorted((lanes[job_id], count) for job_id, count in chosen.items())
    assert by_lane == [
        (Lane.BACKFILL, 1), (Lane.BACKFILL, 1), (Lane.EVENT, 4), (Lane.SENTINEL, 16),
        (Lane.UPLOAD, 4),
    ]  # fmt: skip
