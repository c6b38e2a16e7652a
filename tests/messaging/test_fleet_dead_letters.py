"""Messages that kill their workers, or that no worker can process: set aside, shown, sent again."""

from __future__ import annotations

import json
import signal
from typing import Any

from tests.chaos.scene import DEEDS, wait_until
from tests.messaging.fleet_scene import HOSTILE, Fleet, message, stop

KILLED = -signal.SIGKILL
#: Ends the worker with kill -9 whenever it follows an order.
DOOMED = {"HOLDFAST_FAULT": "accept_job/commit"}
ORDER = message("job.start", {"pipeline": "finding"})

MALFORMED = {
    "NOT_JSON": b'{"header": ',
    "MALFORMED": b'{"header": {}, "body": {}}',
    "UNKNOWN_TYPE": message("job.dance", {"job_id": 1}),
    "UNKNOWN_VERSION": message("job.start", {"pipeline": "deeds"}, version=7),
    "BAD_BODY": message("job.start", {"job_id": "first"}),
    "TOO_LARGE": message("job.start", {"pipeline": "deeds", "options": {"x": "y" * 70_000}}),
    "REFUSED": message("job.start", {"pipeline": "nobody"}),
}


def test_order_that_kills_three_workers_is_a_dead_letter_and_is_followed_when_replayed(
    fleet: Fleet,
) -> None:
    relay = fleet.start_relay()
    fleet.send("orders", ORDER)
    first = _poison(fleet)
    assert (first["kind"], first["code"], first["queue"]) == (
        "message", "DELIVERY_LIMIT", "orders",
    )  # fmt: skip
    assert first["payload"].encode() == ORDER
    (death,) = first["history"]
    assert (death["reason"], death["deliveries"]) == ("delivery_limit", 3)

    fleet.order("dead", "replay", str(first["id"]))
    assert fleet.letter(first["id"])["state"] == "REPLAYED"
    again = _poison(fleet)
    assert (again["id"], again["created_at"]) == (first["id"], first["created_at"])
    assert [death["deliveries"] for death in again["history"]] == [3, 3]
    assert fleet.fetch("select count(*) from jobs")[0][0] == 0

    fleet.order("dead", "replay", str(first["id"]))
    worker = fleet.start_listener(HOSTILE)
    done = "select id from jobs where state = 'DONE'"
    wait_until(lambda: fleet.fetch(done), "the job is done")
    stop(relay, worker)
    fleet.assert_exact(fleet.fetch(done)[0][0], done=20)
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
    fleet.send("orders", *MALFORMED.values())
    letters = fleet.wait_for_letters(len(MALFORMED))
    assert {letter["code"] for letter in letters} == set(MALFORMED)
    for letter in letters:
        assert letter["payload"].encode() == MALFORMED[letter["code"]]
        assert letter["message"]
        (death,) = letter["history"]
        assert (death["queue"], death["deliveries"]) == ("orders", 1)
    stop(relay, worker)
    assert all(fleet.depth(queue) == 0 for queue in ("orders", "dead"))
    shown = fleet.order("dead", "show", str(letters[0]["id"]))
    assert letters[0]["code"] in shown


def test_binary_payload_is_shown_and_replayed_unchanged(fleet: Fleet) -> None:
    relay, worker = fleet.start_relay(), fleet.start_listener()
    fleet.send("orders", b"\xff\x00\xfe")
    (letter,) = fleet.wait_for_letters(1)
    assert (letter["payload"], letter["queue"]) == ("base64:/wD+", "orders")
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
    fleet.send("orders", message("job.start", {"pipeline": "finding"}))
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


def _poison(fleet: Fleet) -> dict[str, Any]:
    """Workers take the order and die of it, until it is an open letter."""
    query = "select id from dead_letters where state = 'OPEN' and kind = 'message'"
    for _ in range(6):
        worker = fleet.start_listener(HOSTILE, **DOOMED)
        wait_until(
            lambda w=worker: w.returncode is not None or fleet.fetch(query),
            "the worker dies, or the message is set aside",
        )
        if found := fleet.fetch(query):
            worker.send_signal(signal.SIGKILL)  # it may have just died, or not
            worker.wait(30)
            return fleet.letter(found[0][0])
        assert worker.returncode == KILLED, worker.said()
    raise AssertionError("the message was never set aside")
