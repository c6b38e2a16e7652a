"""What happens around an item: others, time limits, actions; and workers with wrong clocks."""

from __future__ import annotations

import signal

import pytest

from tests.chaos.scene import DEEDS, Scene, finish, wait_until
from tests.chaos.wrong_clock import start_wrongly


def _done(scene: Scene, job_id: int) -> int:
    query = f"select count(*) from outcomes where job_id = {job_id} and status = 'DONE'"
    return int(scene.fetch(query)[0][0])


def test_slow_item_does_not_hold_its_batch_back(scene: Scene) -> None:
    """The slow item ends only when the worker stops waiting for it."""
    job_id = scene.take_in(["sleep:50", *["sleep:0.005"] * 400])
    worker = scene.start_worker(job_id, HOLDFAST_ITEM_TIMEOUT_SECONDS="55")
    wait_until(lambda: _done(scene, job_id) == 400, "all others are settled", 30)
    assert worker.returncode is None
    assert scene.show(job_id)["counters"]["open"] == 1


def test_item_that_takes_too_long_is_stopped_and_its_neighbours_are_not(scene: Scene) -> None:
    job_id = scene.take_in(["", "sleep:60", *["sleep:0.05"] * 30])
    limits = {"HOLDFAST_ITEM_TIMEOUT_SECONDS": "0.5", "HOLDFAST_MAX_ATTEMPTS_ERROR": "2"}
    finish(scene.start_worker(job_id, **limits))
    told = scene.assert_exact(job_id, done=31, error=1)
    assert told["counters"]["retried"] == 1
    assert [error["code"] for error in told["errors"]] == ["TIMEOUT"]


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(
    ("stop", "go"),
    [
        (["pause", "1"], ["resume", "1"]),
        (["kill-switch", "on"], ["kill-switch", "off"]),
        (["kill-switch", "on", "--pipeline", "saving"],
         ["kill-switch", "off", "--pipeline", "saving"]),
    ],
    ids=["pause", "kill-switch", "kill-switch-of-pipeline"],
)  # fmt: skip
def test_order_to_stop_starts_nothing_more_until_it_is_taken_back(
    scene: Scene, stop: list[str], go: list[str]
) -> None:
    job_id = scene.take_in(["sleep:0.1"] * 300, "saving")
    worker = scene.start("work", DEEDS, HOLDFAST_CONCURRENCY_MAX="4")
    scene.wait_for_starts(50)
    ordered = scene.run(*stop)
    assert ordered.returncode == 0, ordered.said()
    wait_until(lambda: _unleased(scene), "everything is handed in or given back")
    started = sum(scene.witnessed().values())
    told = scene.show(job_id)
    assert told["why"]["kind"] in ("paused", "kill switch")
    assert told["counters"]["done"] == started < 300
    assert scene.run(*go).returncode == 0
    wait_until(lambda: _done(scene, job_id) == 300, "the rest is done")
    worker.send_signal(signal.SIGTERM)
    finish(worker)
    scene.assert_exact(job_id, done=300)
    scene.assert_saved_once(300)
    assert max(scene.witnessed().values()) == 1


def _unleased(scene: Scene) -> bool:
    return scene.fetch("select count(*) from ranges where worker is not null")[0][0] == 0


def test_worker_whose_clock_is_wrong_by_minutes_works_as_the_others(scene: Scene) -> None:
    """One worker is ten minutes ahead, one ten behind; retries, leases and sweeps go by the
    database's time, so that none of them takes from another what it holds."""
    deeds = ["sleep:0.02", "again:1", "hiccup:1"] * 200
    job_id = scene.take_in(deeds, "saving")
    workers = [
        scene.children.call(
            start_wrongly,
            scene.work_command(job_id),
            env=scene.environment({"CHAOS_CLOCK_SECONDS": seconds}),
        )
        for seconds in ("600", "-600")
    ]
    said = [finish(worker) for worker in [*workers, scene.start_worker(job_id)]]
    assert not any("lease.lost" in one for one in said)
    told = scene.assert_exact(job_id, done=600)
    assert told["counters"]["retried"] == 400
    scene.assert_saved_once(600)
    assert sum(scene.witnessed().values()) == 1000


def test_item_that_blocks_its_worker_past_the_lease_is_done_at_its_first_try(
    scene: Scene,
) -> None:
    """No other worker took over the range: the worker must not take it from itself."""
    job_id = scene.take_in(["block:2.5", *["sleep:0.01"] * 20], "saving")
    finish(scene.start_worker(job_id))
    scene.assert_exact(job_id, done=21)
    assert scene.witnessed()[1] == 1
