"""The broker, the relay or the database is not as the others think: work continues exactly."""

from __future__ import annotations

import asyncio
import random
import signal
import time

import pytest

from tests.chaos.scene import DEEDS, wait_until
from tests.messaging.fleet_scene import HOSTILE, Fleet, stop
from tests.postgres import PostgresServer, database_name
from tests.proxy import CHUNK_BYTES, Proxy
from tests.rabbitmq import RabbitServer
from tests.store.checks import execute_at

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


async def test_broker_that_is_absent_at_the_start_is_waited_for_and_said(
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
        assert await asyncio.to_thread(fleet.outcomes, job_id) == 0
        assert [process.returncode for process in processes] == [None, None]
        await proxy.accept()
        await asyncio.to_thread(fleet.wait_done, job_id)
        said = await asyncio.to_thread(stop, *processes)
    assert all("broker.back" in one for one in said)
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
    wait_until(lambda: fleet.depth("interactive") == 3, "a message of each job waits")
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


async def test_relay_that_hears_no_notices_sends_by_looking(fleet: Fleet) -> None:
    async with Cutter(fleet.url, *LISTEN) as proxy:
        relay = fleet.start_relay(HOLDFAST_DATABASE_URL=proxy.url)
        worker = fleet.start_listener()
        for _ in range(2):
            job_id = await asyncio.to_thread(fleet.take_in, ["again:1"] * 50)
            await asyncio.to_thread(fleet.wait_done, job_id)
            await asyncio.to_thread(fleet.assert_exact, job_id, done=50)
        await asyncio.to_thread(stop, relay, worker)
        assert proxy.cuts > 0


async def test_message_waits_if_the_database_goes_while_it_is_judged(
    fleet: Fleet,
) -> None:
    """The worker holds the only place for such messages: it must not forget what it has taken."""
    async with Cutter(fleet.url, b"select pipelines", times=1) as proxy:
        relay = fleet.start_relay()
        job_id = await asyncio.to_thread(fleet.take_in, [""] * 5, "saving")
        never = {"HOLDFAST_SWEEP_SECONDS": "3600"}
        worker = fleet.start_listener(HOSTILE, HOLDFAST_DATABASE_URL=proxy.url, **never)
        (letter,) = await asyncio.to_thread(fleet.wait_for_letters, 1)
        assert (letter["code"], letter["job_id"]) == ("UNKNOWN_PIPELINE", job_id)
        assert proxy.cuts == 1
        await asyncio.to_thread(stop, relay, worker)


@pytest.mark.slow
def test_broker_short_of_memory_holds_work_up_and_loses_none(
    fleet: Fleet, rabbit_server: RabbitServer
) -> None:
    relay, worker = fleet.start_relay(), fleet.start_listener()
    fleet.wait_done(fleet.take_in([""] * 5))
    rabbit_server.control("set_vm_memory_high_watermark", "absolute", "1")
    try:
        job_id = fleet.take_in(["again:1"] * 50, "saving")
        wait_until(lambda: "relay.failed" in relay.said(), "the relay says that it cannot send")
        assert fleet.outcomes(job_id) == 0
    finally:
        rabbit_server.control("set_vm_memory_high_watermark", "0.4")
    fleet.wait_done(job_id)
    stop(relay, worker)
    fleet.assert_exact(job_id, done=50)
    fleet.assert_saved_once(50)
    assert fleet.dead_letters() == []


def test_two_relays_of_which_one_is_killed_again_and_again_send_everything(fleet: Fleet) -> None:
    chance = random.Random(5)
    relays = [fleet.start_relay() for _ in range(2)]
    workers = [
        fleet.start_listener(HOLDFAST_WORKER_TARGET_SLICE_MS="100", **FEW_AT_ONCE) for _ in range(2)
    ]
    jobs = [fleet.take_in(["sleep:0.02", "again:1"] * 100, "saving") for _ in range(3)]
    while any(fleet.state(job_id) != "DONE" for job_id in jobs):
        for relay in relays:
            wait_until(lambda r=relay: "Relaying" in r.said(), "both relay")
        time.sleep(chance.uniform(0.05, 0.5))
        victim = relays.pop(chance.randrange(2))
        victim.send_signal(signal.SIGKILL)
        victim.wait(30)
        relays.append(fleet.start_relay())
    wait_until(lambda: "Relaying" in relays[-1].said(), "it can be stopped in order")
    stop(*relays, *workers)
    for job_id in jobs:
        fleet.assert_exact(job_id, done=200)
    fleet.assert_saved_once_each(3, 200)
    assert fleet.dead_letters() == []


def test_sweeper_alone_brings_a_job_on_whose_announcements_were_lost(fleet: Fleet) -> None:
    """Everything in the outbox and all memory of what was sent is gone."""
    job_id = fleet.take_in([""] * 30, "saving")
    execute_at(fleet.url, "delete from outbox")
    timers, relay = fleet.start("timers", DEEDS), fleet.start_relay()
    worker = fleet.start_listener(HOLDFAST_SWEEP_SECONDS="3600")
    fleet.wait_done(job_id)
    stop(timers, relay, worker)
    fleet.assert_exact(job_id, done=30)
