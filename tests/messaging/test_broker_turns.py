"""Orders of other programs are followed as they come; only slices wait for their turn."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import structlog

from holdfast.cli.broker_composition import broker_turns
from holdfast.cli.composition import worker_options
from holdfast.configuration import load_settings
from holdfast.engine.control import Control
from holdfast.engine.turns import Places, Turn
from holdfast.errors import DatabaseGone
from holdfast.messaging.broker import Broker, Outgoing
from holdfast.messaging.broker_turns import BrokerTurns
from holdfast.messaging.delivery import Delivery
from holdfast.messaging.item_adds import ItemAdds
from holdfast.messaging.relay import Relay
from holdfast.model import SliceKind
from holdfast.observe.metrics import Metrics
from holdfast.pipeline import pipeline
from holdfast.store import Store, open_store
from tests.messaging.conftest import OpenBroker, until
from tests.messaging.fleet_scene import message, slice_of

Add = Callable[..., Awaitable[None]]
NONE_FREE = Places(0, 0)
RECORD = {"pipeline": "notes", "rows": [{"n": 1}]}


@pipeline(name="notes")
async def notes(row: dict[str, int], ctx: object) -> dict[str, int]:
    return row


def order(payload: bytes) -> Outgoing:
    return Outgoing("interactive", str(uuid4()), payload)


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[Store]:
    opened = await open_store(postgres_url)
    yield opened
    await opened.close()


@asynccontextmanager
async def opened(store: Store, url: str, prefix: str) -> AsyncIterator[BrokerTurns]:
    given = {"BROKER_URL": url, "QUEUE_PREFIX": prefix, "OWNER": "tester"}
    settings = load_settings({f"HOLDFAST_{name}": value for name, value in given.items()})
    options = worker_options(settings, None, until_idle=False)
    log, pipelines = structlog.get_logger(), {notes.name: notes}
    async with broker_turns(settings, store, pipelines, options, Metrics(), log) as (turns, _):
        yield turns
        await turns.close()


async def test_records_are_added_while_no_turn_is_taken(
    store: Store, broker_url: str, queue_prefix: str, open_test_broker: OpenBroker
) -> None:
    control = Control(store, "tester", structlog.get_logger())
    job_id, _ = await control.open(notes, {})
    broker = await open_test_broker()
    async with opened(store, broker_url, queue_prefix) as turns:
        assert await turns.next(0.01, NONE_FREE) is None
        bodies = [{"pipeline": "notes", "rows": [{"n": number}]} for number in range(20)]
        payloads = [message("items.add", body) for body in bodies]
        await broker.publish([order(payload) for payload in payloads])

        async def all_are_added() -> bool:
            return (await store.reads.counters(job_id)).accepted == len(bodies)

        await until(all_are_added)
        await broker.publish([order(slice_of(job_id))])
        while (turn := await turns.next(1.0, NONE_FREE)) is None:
            pass
        assert (turn.kind, turn.job_id) == (SliceKind.PROCESS, job_id)
        await turns.ended(turn, worked=True)


async def test_orders_wait_until_the_worker_takes_turns(
    store: Store, broker_url: str, queue_prefix: str, open_test_broker: OpenBroker
) -> None:
    """A worker opens the standing jobs of its pipelines first."""
    broker = await open_test_broker()
    async with opened(store, broker_url, queue_prefix) as turns:
        body = {"pipeline": "notes", "rows": [{"n": 1}]}
        await broker.publish([order(message("items.add", body))])
        job_id, _ = await Control(store, "tester", structlog.get_logger()).open(notes, {})

        async def is_added() -> bool:
            await turns.next(0.01, NONE_FREE)
            return (await store.reads.counters(job_id)).accepted == 1

        await until(is_added)


async def _relay(store: Store, broker: Broker) -> None:
    """A stopped worker sends what it held again, through the outbox."""
    relay = Relay(store, broker, 0.01, random.Random(1), Metrics(), structlog.get_logger())
    relaying = asyncio.create_task(relay.run())
    while await store.database.fetch("select 1 from outbox where kind = 'message'"):
        await asyncio.sleep(0.01)
    relay.stop()
    await relaying


async def test_order_that_a_stop_interrupts_is_followed_once(
    store: Store,
    postgres_url: str,
    broker_url: str,
    queue_prefix: str,
    open_test_broker: OpenBroker,
) -> None:
    """First while it waits for the database; then after the commit, before it is acknowledged."""
    job_id, _ = await Control(store, "tester", structlog.get_logger()).open(notes, {})
    broker = await open_test_broker()
    async with await psycopg.AsyncConnection.connect(postgres_url) as blocker:
        await blocker.execute("lock table inbox in exclusive mode")
        async with opened(store, broker_url, queue_prefix) as turns:
            await turns.next(0.01, NONE_FREE)
            await broker.publish([order(message("items.add", RECORD))])
            await until(partial(_waits_for_lock, postgres_url))
        await blocker.rollback()
    assert await _accepted(store, job_id) == 0

    await _relay(store, broker)
    async with opened(store, broker_url, queue_prefix) as turns:
        add = turns._parts.item_adds.add
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ItemAdds, "add", staticmethod(partial(_add_and_wait, add)))
            await turns.next(0.01, NONE_FREE)
            await until(partial(_is_accepted, store, job_id))
            await turns.close()

    await _relay(store, broker)
    async with opened(store, broker_url, queue_prefix) as turns:
        await broker.publish([order(slice_of(job_id))])
        await turns.ended(await _next(turns), worked=True)
        assert await _accepted(store, job_id) == 1


async def test_order_that_is_acknowledged_during_a_stop_is_not_given_back(
    store: Store, broker_url: str, queue_prefix: str, open_test_broker: OpenBroker
) -> None:
    """RabbitMQ would close the channel."""
    await Control(store, "tester", structlog.get_logger()).open(notes, {})
    broker = await open_test_broker()
    ack, calls = Delivery.ack, []

    async def ack_and_wait(delivery: Delivery) -> None:
        await ack(delivery)
        calls.append("ack")
        await asyncio.Event().wait()

    async def give_back(delivery: Delivery) -> None:
        calls.append("give back")

    async def is_acknowledged() -> bool:
        return bool(calls)

    async with opened(store, broker_url, queue_prefix) as turns:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Delivery, "ack", ack_and_wait)
            patch.setattr(Delivery, "give_back", give_back)
            await turns.next(0.01, NONE_FREE)
            await broker.publish([order(message("items.add", RECORD))])
            await until(is_acknowledged)
            await turns.close()
    assert calls == ["ack"]


async def test_slice_comes_after_orders_that_the_database_or_a_person_delays(
    store: Store, broker_url: str, queue_prefix: str, open_test_broker: OpenBroker
) -> None:
    job_id, _ = await Control(store, "tester", structlog.get_logger()).open(notes, {})
    broker = await open_test_broker()
    async with opened(store, broker_url, queue_prefix) as turns:
        failures = [DatabaseGone("gone"), DatabaseGone("gone")]
        add = turns._parts.item_adds.add
        unknown = {"pipeline": "unknown", "rows": [{"n": 1}]}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ItemAdds, "add", staticmethod(partial(_fail_first, failures, add)))
            payloads = [b"{", message("items.add", RECORD), message("items.add", unknown)]
            await broker.publish([order(each) for each in (*payloads, slice_of(job_id))])
            turn = await _next(turns)
        await turns.ended(turn, worked=True)
        assert not failures
        assert await _accepted(store, job_id) == 1


async def _add_and_wait(add: Add, *order: Any) -> None:
    await add(*order)
    await asyncio.Event().wait()


async def _fail_first(failures: list[DatabaseGone], add: Add, *order: Any) -> None:
    if failures:
        raise failures.pop()
    await add(*order)


async def _next(turns: BrokerTurns) -> Turn:
    while (turn := await turns.next(1.0, NONE_FREE)) is None:
        pass
    return turn


async def _accepted(store: Store, job_id: int) -> int:
    return (await store.reads.counters(job_id)).accepted


async def _is_accepted(store: Store, job_id: int) -> bool:
    return await _accepted(store, job_id) > 0


async def _waits_for_lock(url: str) -> bool:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        cursor = await connection.execute("select 1 from pg_locks where not granted")
        return await cursor.fetchone() is not None
