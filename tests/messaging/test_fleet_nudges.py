"""A nudge is out for as long as a job has work: waiting in the queue of its pipeline, or with a
worker. Whatever becomes of it, the work does not depend on it."""

from __future__ import annotations

import json
import signal

import pytest

from tests.chaos.scene import wait_until
from tests.messaging.fleet_scene import HOSTILE, METRICS_TOKEN, Fleet, message, metric, nudge, stop
from tests.ports import free_port

FEW_AT_ONCE = {"HOLDFAST_CONCURRENCY_MAX": "4"}
QUEUE = "work.saving"
#: More than a worker does in a test that has few at once; another helps it to the end.
SLOW = ["sleep:0.2"] * 1500


def _out(fleet: Fleet) -> int:
    return int(fleet.fetch("select count(*) from nudges")[0][0])


def _waits(fleet: Fleet, count: int = 1) -> bool:
    return _out(fleet) == count and fleet.depth(QUEUE) == count


def _is_held(fleet: Fleet, count: int = 1) -> bool:
    return _out(fleet) == count and fleet.depth(QUEUE) == 0


def test_nudge_is_out_while_a_job_has_work_and_gone_when_it_is_done(fleet: Fleet) -> None:
    relay, jobs = fleet.start_relay(), [fleet.take_in(SLOW, "saving") for _ in "ab"]
    wait_until(lambda: _out(fleet) == 2, "each job has a nudge")
    wait_until(lambda: fleet.nudges(QUEUE) == (2, 0), "RabbitMQ says so too")
    worker = fleet.start_listener(**FEW_AT_ONCE)
    wait_until(lambda: _is_held(fleet, 2), "the worker holds them")
    wait_until(lambda: fleet.nudges(QUEUE) == (0, 2), "RabbitMQ says so too")
    assert {fleet.state(job_id) for job_id in jobs} == {"RUNNING"}
    helper = fleet.start_listener()
    fleet.wait_done(*jobs)
    wait_until(lambda: _out(fleet) == 0, "they are gone")
    stop(relay, worker, helper)
    wait_until(lambda: fleet.nudges(QUEUE) == (0, 0), "RabbitMQ says so too")
    assert fleet.dead_letters() == []


def test_nudge_comes_back_when_its_worker_is_killed_and_never_dies(fleet: Fleet) -> None:
    relay, job_id = fleet.start_relay(), fleet.take_in(SLOW, "saving")
    for _ in range(4):  # more than an order may be delivered
        worker = fleet.start_listener(**FEW_AT_ONCE)
        wait_until(lambda: _is_held(fleet), "the worker holds it")
        worker.send_signal(signal.SIGKILL)
        worker.wait(30)
        wait_until(lambda: _waits(fleet), "it is back in its queue")
    worker = fleet.start_listener()
    fleet.wait_done(job_id)
    wait_until(lambda: _out(fleet) == 0, "it is gone")
    stop(relay, worker)
    wait_until(lambda: fleet.nudges(QUEUE) == (0, 0), "RabbitMQ says so too")
    fleet.assert_exact(job_id, done=len(SLOW))
    fleet.assert_saved_once(len(SLOW))
    assert fleet.dead_letters() == []


def test_nudges_that_were_lost_in_mid_job_are_sent_again(fleet: Fleet) -> None:
    relay, job_id = fleet.start_relay(), fleet.take_in(SLOW, "saving")
    worker = fleet.start_listener(**FEW_AT_ONCE)
    wait_until(lambda: _is_held(fleet), "the worker holds it")
    first = fleet.fetch("select message_id from nudges")
    fleet.wipe_broker()
    again = f"select 1 from nudges where message_id <> '{first[0][0]}'"
    wait_until(lambda: fleet.fetch(again), "another is sent", 60)
    wait_until(lambda: _is_held(fleet), "the worker holds it")
    assert fleet.state(job_id) == "RUNNING"
    helper = fleet.start_listener()
    fleet.wait_done(job_id)
    wait_until(lambda: _out(fleet) == 0, "it is gone")
    stop(relay, worker, helper)
    fleet.assert_exact(job_id, done=len(SLOW))
    fleet.assert_saved_once(len(SLOW))


def test_nudge_that_only_waits_is_not_taken_for_lost(fleet: Fleet) -> None:
    relay, job_id = fleet.start_relay(), fleet.take_in([""], "saving")
    wait_until(lambda: _waits(fleet), "it waits")
    (first,) = fleet.fetch("select message_id from nudges")
    long = "select 1 from nudges where seen_at < now() - interval '13 seconds'"
    wait_until(lambda: fleet.fetch(long), "nobody takes it for some time")
    assert [tuple(row) for row in fleet.fetch("select message_id from nudges")] == [tuple(first)]
    assert _waits(fleet)
    worker = fleet.start_listener()
    fleet.wait_done(job_id)
    stop(relay, worker)


def test_nudge_of_a_pipeline_without_a_worker_waits_and_doctor_says_so(fleet: Fleet) -> None:
    port = free_port()
    relay = fleet.start("relay", "--health-port", str(port), HOLDFAST_METRICS_TOKEN=METRICS_TOKEN)
    worker = fleet.start_listener(HOSTILE)
    job_id = fleet.take_in([""], "saving")

    def length() -> float:
        return metric(port, "holdfast_broker_queue_depth", queue=QUEUE)

    wait_until(lambda: length() == 1, "the relay reports it")
    found = json.loads(fleet.run("doctor", "--json").said())
    (queue,) = [each for each in found if each["what"].endswith(QUEUE)]
    assert not queue["ok"] and "1 messages, 0 consumers" in queue["text"]
    assert "holdfast work" in queue["fix"]
    assert json.loads(fleet.order("show", str(job_id), "--json"))["why"]["kind"] == "no live worker"
    able = fleet.start_listener()
    fleet.wait_done(job_id)
    wait_until(lambda: length() == 0, "the relay reports that it is gone")
    stop(relay, worker, able)
    assert fleet.dead_letters() == []


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("stopped", ["pause", "kill-switch"])
def test_job_that_is_stopped_has_no_nudge_until_it_continues(fleet: Fleet, stopped: str) -> None:
    relay, worker = fleet.start_relay(), fleet.start_listener(**FEW_AT_ONCE)
    job_id = fleet.take_in(SLOW, "saving")
    wait_until(lambda: _is_held(fleet), "the worker holds it")
    orders = {"pause": ["pause", "1"], "kill-switch": ["kill-switch", "on", "--pipeline", "saving"]}
    fleet.order(*orders[stopped])
    wait_until(lambda: _out(fleet) == 0, "the worker has let go of it")
    back = {"pause": ["resume", "1"], "kill-switch": ["kill-switch", "off", "--pipeline", "saving"]}
    fleet.order(*back[stopped])
    wait_until(lambda: _out(fleet) == 1, "there is another")
    helper = fleet.start_listener()
    fleet.wait_done(job_id)
    stop(relay, worker, helper)
    fleet.assert_exact(job_id, done=len(SLOW))


def test_nudges_that_nobody_sent_or_that_come_twice_harm_nothing(fleet: Fleet) -> None:
    relay, worker = fleet.start_relay(), fleet.start_listener(**FEW_AT_ONCE)
    job_id = fleet.take_in(["sleep:0.05", "again:1"] * 50, "saving")
    fleet.wait_for_starts(4)
    fleet.send(QUEUE, *[nudge(job_id), nudge(4711)] * 20)
    fleet.wait_done(job_id)
    wait_until(lambda: _out(fleet) == 0, "the worker has let go of it")
    wait_until(lambda: fleet.nudges(QUEUE) == (0, 0), "and of those that nobody sent")
    told = fleet.assert_exact(job_id, done=100)
    assert told["counters"]["retried"] == 50
    assert fleet.dead_letters() == []
    stop(relay, worker)


def test_what_is_no_nudge_is_a_dead_letter(fleet: Fleet) -> None:
    relay, worker = fleet.start_relay(), fleet.start_listener()
    fleet.send(QUEUE, b"{", message("job.start", {"pipeline": "saving"}))
    letters = fleet.wait_for_letters(2)
    assert {letter["code"] for letter in letters} == {"NOT_JSON", "REFUSED"}
    fleet.send("orders", nudge(1))
    letters = fleet.wait_for_letters(3)
    assert {letter["queue"] for letter in letters} == {QUEUE, "orders"}
    assert "job.work is not an order" in {letter["message"] for letter in letters}
    stop(relay, worker)
