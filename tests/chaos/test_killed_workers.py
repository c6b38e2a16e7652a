"""The program itself is killed at its writes, and at random; the next one finishes the job."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Sequence

import pytest

from tests.chaos.scene import DEEDS, Scene, finish
from tests.store.fault_points import fault_points

POINTS = fault_points()
KILLED = -9
MIXED = ["", "hiccup:1", "miss", "fail", "sleep:0.05", "skip", "again:1", ""] * 12
ENDED = {"done": 60, "not_found": 12, "error": 12, "skipped": 12}
#: Fewer deaths than it takes to hold an item responsible.
DEATHS = 3


def _points(*verbs: str, but: Sequence[str] = ()) -> list[str]:
    """In the order in which a process comes to them, as far as it matters: what was committed
    once is not done again."""
    return [
        f"{verb}/{point}"
        for verb in verbs
        for point in sorted(POINTS[verb], key=lambda point: (point == "committed", point))
        if point not in but
    ]


def _groups(points: list[str]) -> list[list[str]]:
    return [points[start : start + DEATHS] for start in range(0, len(points), DEATHS)]


#: Points that only a death's aftermath, a key known before, a fleet, marks on streams, a request of
#: the API or a long walk come to: see test_kill_points.
RARE = (
    "add_dead_letter", "drop_range", "free_range", "move_to_range", "quarantine_item",
    "add_decision", "add_keys", "move_keys", "take_over_stream", "tell_workers", "end_lost_slices",
    "clear_marks", "mark_stream", "reopen_streams", "undiscover_job", "note_made",
    "prune_stream_pages", "keep_files",
)  # fmt: skip
#: Points that only the end of a pipeline with `plan` or `conclude` comes to: see
#: tests/store/planning_scenarios.py.
PLANNED = (
    "add_job",
    "add_stream",
    "declare_gate",
    "refuse_stream",
    "reopen_stream",
    "verify_stream",
)
AT_WORK = [
    *_points("claim", but=(*RARE, "add_range", "count")),
    *_points("settle", but=RARE),
    *_points("complete", but=(*RARE, *PLANNED)),
    "add_worker/commit", "beat/commit", "stop_worker/commit",
]  # fmt: skip


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("points", _groups(AT_WORK), ids=lambda points: points[0])
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_job_whose_workers_are_killed_at_their_writes_ends_exactly(
    scene: Scene, points: list[str]
) -> None:
    job_id = scene.take_in(MIXED, "saving")
    for point in points:
        small = {"HOLDFAST_CLAIM_MAX": "16"}
        worker = scene.start_worker(job_id, HOLDFAST_FAULT=point, **small)
        assert worker.wait(60) == KILLED, (point, worker.said())
    finish(scene.start_worker(job_id))
    scene.assert_exact(job_id, **ENDED)
    scene.assert_saved_once(len(MIXED))


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_run_that_is_killed_at_each_write_of_its_ingest_is_continued(scene: Scene) -> None:
    """One file, one process for each point; each takes the file up where the last was killed."""
    points = _points("create", "lease_stream", "take_sequence", "ingest", but=RARE)
    small = {"HOLDFAST_INGEST_MIN_ROWS": "50", "HOLDFAST_INGEST_MAX_ROWS": "50"}
    command = ("run", f"{DEEDS}:saving", scene.table([""] * 1000))
    for point in points:
        killed = scene.run(*command, "--no-work", HOLDFAST_FAULT=point, **small)
        assert killed.returncode == KILLED, (point, killed.said())
    finish(scene.start(*command, **small))
    scene.assert_exact(1, done=1000)
    scene.assert_saved_once(1000)
    numbers = [result["n"] for _, result in sorted(scene.results(1).items())]
    assert numbers == [str(number) for number in range(1, 1001)]


def test_workers_killed_at_random_lose_nothing_and_settle_nothing_twice(scene: Scene) -> None:
    chance = random.Random(7)
    job_id = scene.take_in(random_deeds(chance, 3000), "saving")
    kill_at_random(scene, job_id, chance, workers=2, seconds=4)
    for worker in [scene.start_worker(job_id) for _ in range(2)]:
        finish(worker)
    scene.assert_exact(job_id, done=3000)
    scene.assert_saved_once(3000)
    assert len(scene.witnessed()) == 3000


def random_deeds(chance: random.Random, count: int) -> list[str]:
    return chance.choices(["", "sleep:0.01", "sleep:0.03", "hiccup:1", "again:1"], k=count)


def kill_at_random(
    scene: Scene, job_id: int, chance: random.Random, *, workers: int, seconds: float
) -> int:
    """Kills one of the workers again and again and starts another in its place."""
    running = [scene.start_worker(job_id) for _ in range(workers)]
    end, kills = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        time.sleep(chance.uniform(0.2, 1.0))
        victim = running.pop(chance.randrange(workers))
        victim.send_signal(signal.SIGKILL)
        kills += victim.wait(30) == KILLED
        running.append(scene.start_worker(job_id))
    for worker in running:
        worker.send_signal(signal.SIGKILL)
        worker.wait(30)
    return kills
