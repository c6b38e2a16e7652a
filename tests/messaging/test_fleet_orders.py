"""Orders of other programs, where pipelines and the database fail them."""

from __future__ import annotations

import json
import random
import signal
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import psycopg
import pytest

from tests.chaos.scene import DEEDS, wait_until
from tests.messaging.fleet_scene import HOSTILE, Fleet, message, stop
from tests.postgres import PostgresServer
from tests.store.checks import execute_at

#: Wants an option that an order may lack.
PICKY = """
from holdfast import Option, Page, Pipeline, Record

class Picky(Pipeline):
    options = [Option("site")]

    def sources(self, options):
        return [options["site"]]

    async def discover(self, source, cursor, ctx):
        yield Page([Record({"site": source})], end=True)

    async def process(self, row, ctx):
        return row
"""

COUNTED = """
from holdfast import pipeline

@pipeline(standing=True)
async def counted(row, ctx):
    return row
"""


TIMED = """
import time
from holdfast import pipeline

@pipeline(standing=True)
async def timed(row, ctx):
    return {"at": time.time()}
"""


#: The two pipelines that the page of messages sends something to.
DOCUMENTED = """
from holdfast import Option, Page, Pipeline, Record, pipeline

class Tides(Pipeline):
    options = [Option("harbour")]

    async def discover(self, source, cursor, ctx):
        yield Page([Record({"harbour": ctx.options["harbour"]})], end=True)

    async def process(self, row, ctx):
        return row

@pipeline(standing=True)
async def orders(row, ctx):
    return row
"""

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "messages.md"


@pytest.fixture
def picky(fleet: Fleet) -> Path:
    path = fleet.folder / "picky.py"
    path.write_text(PICKY)
    return path


def order(**options: str) -> bytes:
    return message("job.start", {"pipeline": "picky", "options": options})


def test_order_that_the_pipeline_cannot_follow_is_refused_and_its_worker_lives(
    fleet: Fleet, picky: Path
) -> None:
    relay, worker = fleet.start_relay(), fleet.start_listener(picky)
    fleet.send("orders", order())
    (letter,) = fleet.wait_for_letters(1)
    assert letter["code"] == "REFUSED"
    assert "needs the option site" in letter["message"]
    fleet.send("orders", order(site="here"))
    fleet.wait_done(1)
    stop(relay, worker)


def test_order_that_no_database_can_hold_is_refused_and_its_worker_lives(
    fleet: Fleet, picky: Path
) -> None:
    relay, worker = fleet.start_relay(), fleet.start_listener(picky)
    fleet.send("orders", order(site="a\0b"))
    (letter,) = fleet.wait_for_letters(1)
    assert letter["code"] == "REFUSED"
    fleet.send("orders", order(site="here"))
    fleet.wait_done(1)
    stop(relay, worker)


def test_order_waits_for_a_database_that_is_gone(
    fleet: Fleet, picky: Path, postgres_server: PostgresServer
) -> None:
    relay, worker = fleet.start_relay(), fleet.start_listener(picky)
    wait_until(lambda: "Relaying" in relay.said() and fleet.consumers("orders") == 1, "both run")
    postgres_server.stop()
    try:
        fleet.send("orders", order(site="here"))
        wait_until(lambda: worker.said().count("database.gone") >= 5, "the worker tried often")
    finally:
        postgres_server.start()
    fleet.wait_done(1)
    stop(relay, worker)
    assert fleet.dead_letters() == []


def test_order_for_a_pipeline_of_another_worker_comes_to_it(fleet: Fleet, picky: Path) -> None:
    workers = [fleet.start_listener(pipelines) for pipelines in (DEEDS, DEEDS, picky)]
    relay = fleet.start_relay()
    wait_until(lambda: fleet.consumers("orders") == 3, "all listen")
    fleet.send("orders", *(order(site=f"site {number}") for number in range(3)))
    done = "select count(*) from jobs where state = 'DONE'"
    wait_until(lambda: fleet.fetch(done)[0][0] == 3, "each was followed")
    stop(relay, *workers)
    assert fleet.dead_letters() == []


def test_records_of_a_message_are_stored_once_and_worked_off(fleet: Fleet) -> None:
    body = {"pipeline": "counted", "rows": [{"id": 1}, {"id": 2}, {"id": 2}], "key": "id"}
    add = message("items.add", body)
    path = fleet.folder / "counted.py"
    path.write_text(COUNTED)
    relay, worker = fleet.start_relay(), fleet.start_listener(path)
    wait_until(lambda: fleet.fetch("select 1 from jobs where standing = 1"), "the job is open")
    fleet.send("orders", add)
    fleet.send("orders", add)
    fleet.send("orders", message("items.add", {**body, "pipeline": "unknown"}))
    (letter,) = fleet.wait_for_letters(1)
    assert (letter["code"], "no standing job" in letter["message"]) == ("REFUSED", True)
    done = "select sum(accepted), sum(known), sum(done) from counters"
    wait_until(lambda: [*map(tuple, fleet.fetch(done))] == [(2, 1, 2)], "all is done")
    stop(relay, worker)


def test_records_of_a_message_start_at_their_time(fleet: Fleet) -> None:
    path = fleet.folder / "timed.py"
    path.write_text(TIMED)
    relay, worker = fleet.start_relay(), fleet.start_listener(path)
    run_at = datetime.now(UTC) + timedelta(seconds=3)
    body = {"pipeline": "timed", "rows": [{"n": 1}], "run_at": run_at.isoformat()}
    wait_until(lambda: fleet.fetch("select 1 from jobs where standing = 1"), "the job is open")
    fleet.send("orders", message("items.add", body))
    done = "select result from outcomes where status = 'DONE'"
    wait_until(lambda: fleet.fetch(done), "it is done")
    assert json.loads(fleet.fetch(done)[0][0])["at"] >= run_at.timestamp()
    stop(relay, worker)


@pytest.mark.exhaustive  # another test here stops the worker of one order again and again
def test_orders_are_followed_exactly_once_while_workers_and_relays_are_killed(
    fleet: Fleet,
) -> None:
    chance = random.Random(7)
    path = fleet.folder / "counted.py"
    path.write_text(COUNTED)
    both = [str(path), str(HOSTILE)]
    adds = [message("items.add", {"pipeline": "counted", "rows": [{"id": n}]}) for n in range(120)]
    starts = [message("job.start", {"pipeline": "finding"}) for _ in range(3)]
    fleet.order("open", path)
    for number in range(6):
        processes = [fleet.start_relay(), *(fleet.start_listener(*both) for _ in range(2))]
        wait_until(lambda: fleet.consumers("orders") > 0, "they listen")
        # Each comes twice, as from a producer that saw no confirm.
        fleet.send("orders", *adds[number * 20 :][:20], *adds[number * 20 :][:20])
        fleet.send("orders", starts[number // 2])
        time.sleep(chance.uniform(0.0, 0.3))
        for process in processes:
            process.send_signal(signal.SIGKILL)
            process.wait(30)
    relay, worker = fleet.start_relay(), fleet.start_listener(*both)
    expected = "select count(*), count(distinct input::text) from items where job_id = 1"

    def complete() -> bool:
        for letter in fleet.dead_letters():  # delivered to three that were killed
            assert letter["code"] == "DELIVERY_LIMIT"
            fleet.order("dead", "replay", str(letter["id"]))
        starts = "select count(*) from taken_keys where fingerprint = 'job.start'"
        started = fleet.fetch(starts)[0][0]
        return tuple(fleet.fetch(expected)[0]) == (120, 120) and started == 3

    wait_until(complete, "all were followed")
    wait_until(lambda: fleet.depth("orders") == 0, "what came twice is taken too")
    stop(relay, worker)
    assert tuple(fleet.fetch(expected)[0]) == (120, 120)
    assert fleet.fetch("select count(*) from jobs")[0][0] == 4


def test_order_that_is_switched_off_waits_and_is_no_dead_letter(fleet: Fleet, picky: Path) -> None:
    fleet.order("kill-switch", "on", "--pipeline", "picky")
    worker = fleet.start_listener(picky)
    fleet.send("orders", order(site="here"))
    waiting = "select count(*) from outbox"
    wait_until(lambda: fleet.fetch(waiting)[0][0] == 1, "the order waits")
    assert fleet.fetch("select count(*) from dead_letters")[0][0] == 0
    fleet.order("kill-switch", "off", "--pipeline", "picky")
    execute_at(fleet.url, "update outbox set available_at = now()")
    relay = fleet.start_relay()
    fleet.wait_done(1)
    stop(relay, worker)


def test_order_whose_worker_is_stopped_again_and_again_is_followed_and_no_dead_letter(
    fleet: Fleet,
) -> None:
    """Five deploys are more than a message may be delivered."""
    path = fleet.folder / "counted.py"
    path.write_text(COUNTED)
    fleet.start_relay()
    add = message("items.add", {"pipeline": "counted", "rows": [{"id": 1}]})
    held = {"message_id": orjson.loads(add)["header"]["message_id"], "type": "items.add"}
    open_job = "select 1 from jobs where standing = 1"
    waits = "select count(*) from pg_locks where not granted"
    with psycopg.connect(fleet.url) as other:
        # As if another worker were storing the same message, and did not end.
        other.execute(
            "insert into taken_keys (owner_id, key, fingerprint, content, at)"
            " values ('', %(message_id)s, %(type)s, '', now())",
            held,
        )
        fleet.send("orders", add)
        for _ in range(5):
            worker = fleet.start_listener(path)
            wait_until(lambda: fleet.fetch(open_job), "the job is open")
            wait_until(lambda: fleet.fetch(waits)[0][0] > 0, "the message is being stored")
            stop(worker)
        other.rollback()
    fleet.start_listener(path)
    done = "select sum(accepted), sum(done) from counters"
    wait_until(lambda: [*map(tuple, fleet.fetch(done))] == [(1, 1)], "the record is done")
    assert fleet.dead_letters() == []


def test_messages_on_the_page_of_messages_do_what_it_says(fleet: Fleet) -> None:
    path = fleet.folder / "documented.py"
    path.write_text(DOCUMENTED)
    relay = fleet.start_relay()
    worker = fleet.start_listener(f"{path}:tides", f"{path}:orders")
    blocks = PAGE.read_text().split("```json\n")[1:]
    fleet.send("orders", *(block.split("```")[0].encode() for block in blocks))
    done = "select input, status from items join outcomes using (job_id, seq) order by input::text"
    wait_until(lambda: len(fleet.fetch(done)) == 2, "each was followed")
    stop(relay, worker)
    assert [tuple(row) for row in fleet.fetch(done)] == [
        ('{"harbour":"Split"}', "DONE"),
        ('{"id":7,"title":"Kettle"}', "DONE"),
    ]
    assert fleet.dead_letters() == []
