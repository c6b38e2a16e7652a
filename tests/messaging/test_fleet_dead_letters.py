"""Messages that kill their workers, or that no worker can process: set aside, shown, sent again."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from tests.chaos.scene import DEEDS, wait_until
from tests.messaging.fleet_scene import HOSTILE, Fleet, message, stop

KILLED = -signal.SIGKILL
#: Ends the worker with kill -9 in the first claim it makes: in each delivery of a slice.
DOOMED = {"HOLDFAST_FAULT": "claim/commit"}

MALFORMED = {
    "NOT_JSON": b'{"header": ',
    "MALFORMED": b'{"header": {}, "body": {}}',
    "UNKNOWN_TYPE": message("slice.dance", {"job_id": 1}),
    "UNKNOWN_VERSION": message("slice.process", {"job_id": 1}, version=7),
    "BAD_BODY": message("slice.process", {"job_id": "first"}),
    "TOO_LARGE": message("job.start", {"pipeline": "deeds", "options": {"x": "y" * 70_000}}),
    "REFUSED": message("job.start", {"pipeline": "nobody"}),
}


def test_message_whose_worker_dies_each_time_is_a_dead_letter_and_its_job_is_done(
    fleet: Fleet,
) -> None:
    fleet.start_relay()
    job_id = fleet.take_in([""] * 20, "saving")
    letter = _poison(fleet)
    assert (letter["kind"], letter["code"], letter["queue"]) == (
        "message", "DELIVERY_LIMIT", "interactive",
    )  # fmt: skip
    assert letter["job_id"] == job_id
    assert f'"job_id":{job_id}' in letter["payload"]
    (death,) = letter["history"]
    assert (death["reason"], death["deliveries"]) == ("delivery_limit", 3)
    worker = fleet.start_listener()
    fleet.wait_done(job_id)
    stop(worker)
    fleet.assert_exact(job_id, done=20)
    fleet.assert_saved_once(20)


def test_poison_that_is_replayed_has_three_deliveries_again_and_keeps_its_first_error(
    fleet: Fleet,
) -> None:
    fleet.start_relay()
    job_id = fleet.take_in([""] * 20, "saving")
    first = _poison(fleet)
    fleet.order("dead", "replay", str(first["id"]))
    assert fleet.letter(first["id"])["state"] == "REPLAYED"
    again = _poison(fleet, f"id = {first['id']}")
    assert (again["state"], again["created_at"]) == ("OPEN", first["created_at"])
    assert [death["deliveries"] for death in again["history"]] == [3, 3]

    fleet.order("dead", "replay", str(first["id"]))
    worker = fleet.start_listener()
    fleet.wait_done(job_id)
    stop(worker)
    fleet.assert_exact(job_id, done=20)
    fleet.assert_saved_once(20)
    assert fleet.letter(first["id"])["state"] == "REPLAYED"


def test_item_that_kills_every_worker_of_a_host_is_set_aside_and_the_job_is_done(
    fleet: Fleet,
) -> None:
    relay, host = fleet.start_relay(), fleet.start_worker_host(2)
    job_id = fleet.take_in(["", "kill", *["sleep:0.02"] * 40], "saving")
    fleet.wait_done(job_id)
    stop(relay, host)
    fleet.assert_exact(job_id, done=41, error=1)
    (letter,) = fleet.dead_items()
    assert (letter["seq"], letter["code"]) == (2, "CRASHED")


def test_malformed_messages_are_dead_letters_at_their_first_delivery(fleet: Fleet) -> None:
    relay, worker = fleet.start_relay(), fleet.start_listener()
    fleet.send("interactive", *MALFORMED.values())
    letters = fleet.wait_for_letters(len(MALFORMED))
    assert {letter["code"] for letter in letters} == set(MALFORMED)
    for letter in letters:
        assert letter["payload"].encode() == MALFORMED[letter["code"]]
        assert letter["message"]
        (death,) = letter["history"]
        assert (death["queue"], death["deliveries"]) == ("interactive", 1)
    stop(relay, worker)
    assert all(fleet.depth(queue) == 0 for queue in ("interactive", "dead"))
    shown = fleet.order("dead", "show", str(letters[0]["id"]))
    assert letters[0]["code"] in shown


def test_binary_payload_is_shown_and_replayed_unchanged(fleet: Fleet) -> None:
    relay, worker = fleet.start_relay(), fleet.start_listener()
    fleet.send("bulk", b"\xff\x00\xfe")
    (letter,) = fleet.wait_for_letters(1)
    assert (letter["payload"], letter["queue"]) == ("base64:/wD+", "bulk")
    fleet.order("dead", "replay", str(letter["id"]))
    wait_until(lambda: len(fleet.letter(letter["id"])["history"]) == 2, "it died again")
    (again,) = fleet.wait_for_letters(1)
    assert again["payload"] == letter["payload"]
    assert (again["code"], again["created_at"]) == (letter["code"], letter["created_at"])
    fleet.order("dead", "drop", str(letter["id"]))
    stop(relay, worker)
    assert fleet.dead_letters() == []


def test_order_that_was_refused_is_done_when_it_is_replayed_to_who_can(fleet: Fleet) -> None:
    relay, worker = fleet.start_relay(), fleet.start_listener(DEEDS)
    fleet.send("interactive", message("job.start", {"pipeline": "finding"}))
    (letter,) = fleet.wait_for_letters(1)
    assert letter["code"] == "REFUSED"
    assert "finding" in letter["message"]
    stop(worker)
    able = fleet.start_listener(HOSTILE)
    fleet.order("dead", "replay", str(letter["id"]))
    fleet.wait_done(1)
    stop(relay, able)
    fleet.assert_exact(1, done=20)
    assert fleet.dead_letters() == []


@pytest.mark.parametrize("mended_by", ["replay", "nobody"])
def test_slice_of_a_pipeline_without_a_worker_is_a_dead_letter_until_one_starts(
    fleet: Fleet, mended_by: str
) -> None:
    relay, worker = fleet.start_relay(), fleet.start_listener(HOSTILE)
    job_id = fleet.take_in([""] * 5, "saving")
    (letter,) = fleet.wait_for_letters(1)
    assert (letter["code"], letter["job_id"]) == ("UNKNOWN_PIPELINE", job_id)
    assert "'saving'" in letter["message"]
    stop(worker)
    able = fleet.start_listener(DEEDS)
    if mended_by == "replay":
        fleet.order("dead", "replay", str(letter["id"]))
    fleet.wait_done(job_id)
    stop(relay, able)
    fleet.assert_exact(job_id, done=5)
    fleet.assert_saved_once(5)
    assert len(fleet.dead_letters()) == (mended_by == "nobody")


def test_state_that_no_letter_has_is_reported_with_those_there_are(fleet: Fleet) -> None:
    refused = fleet.run("dead", "list", "--state", "lost")
    assert refused.returncode == 2
    assert "replayed" in refused.said().lower()
    assert json.loads(fleet.order("dead", "list", "--state", "replayed", "--json")) == []


def test_letter_that_is_not_there_is_a_mistake_that_says_what_to_do(fleet: Fleet) -> None:
    for order in (["show", "99"], ["replay", "99"], ["drop", "99"]):
        refused = fleet.run("dead", *order)
        assert refused.returncode == 1
        assert "holdfast dead list" in refused.said()
        assert "Traceback" not in refused.said()


def _poison(fleet: Fleet, condition: str = "true") -> dict[str, Any]:
    """Workers take the job's message and die of it, until it is an open letter. Another message
    of the job, which the sweeps of these workers sent, may die before."""
    query = (
        "select id from dead_letters "
        f"where state = 'OPEN' and kind = 'message' and {condition} order by id"
    )
    for _ in range(12):
        worker = fleet.start_listener(**DOOMED)
        wait_until(
            lambda w=worker: w.returncode is not None or fleet.fetch(query),
            "the worker dies, or the message is set aside",
        )
        if found := fleet.fetch(query):
            return fleet.letter(found[0][0])
        assert worker.returncode == KILLED, worker.said()
    raise AssertionError("the message was never set aside")
