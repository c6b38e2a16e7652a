"""The broker, the relay or the database is not as the others think: work continues exactly."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from uuid import uuid4

import psycopg
import pytest

from tests.chaos.scene import wait_until
from tests.messaging.fleet_scene import HOSTILE, Fleet, message, stop
from tests.messaging.test_fleet_orders import COUNTED
from tests.postgres import PostgresServer, database_name
from tests.proxy import CHUNK_BYTES, Proxy
from tests.rabbitmq import RabbitServer

#: As a pooler that shares its connections ends those that listen.
LISTEN = (b'LISTEN "holdfast_outbox"', b"LISTEN holdfast_outbox")
FEW_AT_ONCE = {"HOLDFAST_CONCURRENCY_MAX": "4"}


class Cutter(Proxy):
    """Ends a connection on which one of these words passes, this many times."""

    def __init__(self, url: str, *words: bytes, times: float = float("inf")) -> None:
        super().__init__(url)
        self.cuts = 0
        self._words = words
        self._times = times

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, to_server: bool = False
    ) -> None:
        try:
            while data := await reader.read(CHUNK_BYTES):
                if self.cuts < self._times and any(word in data for word in self._words):
                    self.cuts += 1
                    return
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            return


async def test_broker_that_is_absent_at_the_start_holds_no_work_up_and_is_said(
    fleet: Fleet, broker_url: str
) -> None:
    async with Proxy(broker_url) as proxy:
        await proxy.refuse()
        elsewhere = {"HOLDFAST_BROKER_URL": proxy.url}
        job_id = await asyncio.to_thread(fleet.take_in, [""] * 30, "saving")
        processes = [fleet.start_relay(**elsewhere), fleet.start_listener(**elsewhere)]
        for process in processes:
            says = lambda p=process: "broker.gone" in p.said()  # noqa: E731
            await asyncio.to_thread(wait_until, says, "it says that the broker is gone")
        await asyncio.to_thread(fleet.wait_done, job_id)
        assert [process.returncode for process in processes] == [None, None]
        await proxy.accept()
        for process in processes:
            says = lambda p=process: "broker.back" in p.said()  # noqa: E731
            await asyncio.to_thread(wait_until, says, "it says that the broker is back")
        relaying = lambda: "Relaying" in processes[0].said()  # noqa: E731
        await asyncio.to_thread(wait_until, relaying, "the relay can be stopped in order")
        said = await asyncio.to_thread(stop, *processes)
    assert not any("guest:guest" in one for one in said)
    await asyncio.to_thread(fleet.assert_exact, job_id, done=30)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_process_that_waits_for_an_absent_broker_can_be_stopped(
    fleet: Fleet, broker_url: str, number: signal.Signals
) -> None:
    async with Proxy(broker_url) as proxy:
        await proxy.refuse()
        elsewhere = {"HOLDFAST_BROKER_URL": proxy.url}
        processes = [fleet.start_relay(**elsewhere), fleet.start_listener(**elsewhere)]
        for process in processes:
            says = lambda p=process: "broker.gone" in p.said()  # noqa: E731
            await asyncio.to_thread(wait_until, says, "it says that the broker is gone")
            process.send_signal(number)
            await asyncio.to_thread(process.wait, 20)
            assert "Traceback" not in process.said()


def test_broker_that_lost_its_queues_and_messages_costs_no_item(fleet: Fleet) -> None:
    relay = fleet.start_relay()
    jobs = [fleet.take_in(["sleep:0.05"] * 100, "saving") for _ in range(3)]
    wait_until(lambda: fleet.nudges("work.saving") == (3, 0), "a nudge of each job waits")
    fleet.wipe_broker()
    workers = [fleet.start_listener(**FEW_AT_ONCE) for _ in range(2)]
    fleet.wait_for_starts(30)
    fleet.wipe_broker()
    fleet.wait_done(*jobs)
    stop(relay, *workers)
    for job_id in jobs:
        fleet.assert_exact(job_id, done=100)
    fleet.assert_saved_once_each(3, 100)


async def test_database_restored_to_an_older_state_and_newer_messages_do_no_harm(
    fleet: Fleet, postgres_server: PostgresServer
) -> None:
    """Relay and worker live through it. What the older state knows is done again, what it does
    not know is gone, and a number that is given out again belongs to the new job alone."""
    name = database_name(fleet.url)
    backup = f"{name}_backup"
    async with Proxy(fleet.url) as proxy:
        there = {"HOLDFAST_DATABASE_URL": proxy.url}
        first = await asyncio.to_thread(fleet.take_in, ["sleep:0.02"] * 150, "saving")
        relay, early = fleet.start_relay(**there), fleet.start_listener(**there, **FEW_AT_ONCE)
        await asyncio.to_thread(fleet.wait_for_starts, 40)
        await asyncio.to_thread(stop, early, relay)
        postgres_server.create_database(template=name, name=backup)

        relay, worker = fleet.start_relay(**there), fleet.start_listener(**there, **FEW_AT_ONCE)
        forgotten = await asyncio.to_thread(fleet.take_in, [""] * 30, "saving")
        await asyncio.to_thread(fleet.wait_done, first, forgotten)
        unknown = await asyncio.to_thread(fleet.take_in, ["sleep:0.2"] * 100, "saving")
        await asyncio.to_thread(fleet.wait_for_starts, 4)
        await proxy.refuse()
        postgres_server.drop_database(fleet.url)
        postgres_server.create_database(template=backup, name=name)
        postgres_server.drop_database(postgres_server.url(backup))
        same_number = await asyncio.to_thread(fleet.take_in, [""] * 20, "deeds")
        assert (same_number, unknown) == (forgotten, forgotten + 1)
        await proxy.accept()
        await asyncio.to_thread(fleet.wait_done, first, same_number)
        await asyncio.to_thread(stop, relay, worker)
    await asyncio.to_thread(fleet.assert_exact, first, done=150)
    await asyncio.to_thread(fleet.assert_exact, same_number, done=20)
    await asyncio.to_thread(fleet.assert_saved_once, 150)


def _put_into_outbox(fleet: Fleet, *bodies: bytes) -> None:
    """Without waking a relay."""
    with psycopg.connect(fleet.url) as connection:
        for body in bodies:
            connection.execute(
                "insert into holdfast.outbox"
                " (message_id, queue, payload, available_at, failures, created_at)"
                " values (%s, 'orders', %s, now(), 0, now())",
                (str(uuid4()), body),
            )


async def test_relay_that_hears_no_notices_sends_by_looking(fleet: Fleet) -> None:
    async with Cutter(fleet.url, *LISTEN) as proxy:
        relay, worker = (
            fleet.start_relay(HOLDFAST_DATABASE_URL=proxy.url),
            fleet.start_listener(HOSTILE),
        )
        order = message("job.start", {"pipeline": "finding"})
        await asyncio.to_thread(_put_into_outbox, fleet, order)
        await asyncio.to_thread(fleet.wait_done, 1)
        await asyncio.to_thread(stop, relay, worker)
        assert proxy.cuts > 0


@pytest.mark.slow
def test_broker_short_of_memory_holds_messages_up_and_no_work(
    fleet: Fleet, rabbit_server: RabbitServer
) -> None:
    relay, worker = fleet.start_relay(), fleet.start_listener()
    fleet.wait_done(fleet.take_in([""] * 5))
    rabbit_server.control("set_vm_memory_high_watermark", "absolute", "1")
    try:
        job_id = fleet.take_in(["again:1"] * 50, "saving")
        _put_into_outbox(fleet, message("job.start", {"pipeline": "nobody"}))
        wait_until(lambda: "relay.failed" in relay.said(), "the relay says that it cannot send")
        fleet.wait_done(job_id)
    finally:
        rabbit_server.control("set_vm_memory_high_watermark", "0.4")
    (letter,) = fleet.wait_for_letters(1)
    assert letter["code"] == "REFUSED"
    fleet.order("dead", "drop", str(letter["id"]))
    stop(relay, worker)
    fleet.assert_exact(job_id, done=50)
    fleet.assert_saved_once(50)
    assert fleet.dead_letters() == []


def test_two_relays_of_which_one_is_killed_again_and_again_send_everything(fleet: Fleet) -> None:
    chance = random.Random(5)
    path = fleet.folder / "counted.py"
    path.write_text(COUNTED)
    relays, worker = [fleet.start_relay() for _ in range(2)], fleet.start_listener(path)
    wait_until(lambda: fleet.fetch("select 1 from jobs where standing = 1"), "the job is open")
    rows = [{"pipeline": "counted", "rows": [{"n": number}]} for number in range(500)]
    for start in range(0, 500, 100):
        bodies = [message("items.add", body) for body in rows[start : start + 100]]
        _put_into_outbox(fleet, *bodies)
        for relay in relays:
            wait_until(lambda r=relay: "Relaying" in r.said(), "both relay")
        time.sleep(chance.uniform(0.0, 0.3))
        victim = relays.pop(chance.randrange(2))
        victim.send_signal(signal.SIGKILL)
        victim.wait(30)
        relays.append(fleet.start_relay())
    done = "select count(*) from outcomes where status = 'DONE'"
    wait_until(lambda: fleet.fetch(done)[0][0] == 500, "all is done")
    wait_until(lambda: "Relaying" in relays[-1].said(), "it can be stopped in order")
    stop(*relays, worker)
    assert fleet.fetch("select count(*), count(distinct input::text) from items")[0][:] == (
        500,
        500,
    )
    assert fleet.dead_letters() == []
