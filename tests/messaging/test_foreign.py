"""Queues of others: each message is taken once, in one transaction, and acknowledged after it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aio_pika
import orjson
import pytest
import structlog
from aio_pika import Message
from aio_pika.abc import AbstractConnection
from aio_pika.exceptions import ChannelNotFoundEntity

from holdfast import Pipeline, Record
from holdfast.cli.broker_composition import accepting
from holdfast.configuration import load_settings
from holdfast.consumers import BadMessage, Binding, Incoming, QueueConsumer, Topic
from holdfast.errors import FilesGone, PipelineError, Throttled
from holdfast.kernel import Store
from holdfast.kernel.jobs.control import Control, JobRequest
from holdfast.messaging.broker import Broker
from holdfast.messaging.foreign import ForeignConsumer, ForeignQueue
from holdfast.observe.metrics import Metrics
from holdfast.tasks import end_tasks
from tests.messaging.conftest import next_of, until
from tests.store.checks import execute, fetch, spelled


class _Hasty(random.Random):
    """Waits a fiftieth of each delay."""

    def uniform(self, a: float, b: float) -> float:
        return 0.02


class Orders(Pipeline):
    name = "orders"
    standing = True

    async def process(self, row: Any, ctx: Any) -> Any:
        return row


async def take_orders(tx: Any, message: Incoming) -> Sequence[Record]:
    body = message.json()
    if "orders" not in body:
        raise BadMessage("it has no orders")
    return [Record({"n": n}) for n in body["orders"]]


class Desk:
    """The standing job of a pipeline, and a queue whose messages fill it."""

    def __init__(
        self, store: Store, broker: Broker, connection: AbstractConnection, prefix: str
    ) -> None:
        self.store, self.broker, self.connection = store, broker, connection
        self.queue, self.exchange = f"theirs-{prefix}", f"shop-{prefix}"

    async def open(self) -> int:
        control = Control(self.store, "local", structlog.get_logger())
        return (await control.open(JobRequest(Orders())))[0]

    @asynccontextmanager
    async def reading(self, take: Any = take_orders, **options: Any) -> AsyncIterator[None]:
        log = structlog.get_logger()
        spec = QueueConsumer(
            self.queue, take, [Binding(self.exchange, "orders.#", "topic")], **options
        )
        consumer = await self.broker.read(ForeignQueue(self.broker.topology, spec), spec.prefetch)
        accept = accepting(load_settings({}), self.store, Orders(), spec, log)
        messages = self.store.messages
        reader = ForeignConsumer(spec, consumer, accept, messages, Metrics(), _Hasty(), log)
        task = asyncio.create_task(reader.run())
        await until(self._is_read)
        try:
            yield
        finally:
            await consumer.stop()
            await end_tasks([task])
            await consumer.close()

    async def _is_read(self) -> bool:
        try:
            return bool((await self._declared()).consumer_count)
        except ChannelNotFoundEntity:
            return False

    async def _declared(self) -> Any:
        async with self.connection.channel() as channel:
            return (await channel.declare_queue(self.queue, passive=True)).declaration_result

    async def send(self, body: bytes, message_id: str | None = None, **headers: Any) -> None:
        async with self.connection.channel() as channel:
            exchange = await channel.get_exchange(self.exchange, ensure=False)
            message = Message(body, message_id=message_id, headers=headers)
            await exchange.publish(message, "orders.new")

    async def inputs(self, job_id: int) -> list[str]:
        sql = "select input from items where job_id = :job order by seq"
        return [str(row[0]) for row in await fetch(self.store, sql, job=job_id)]

    async def waiting(self) -> int:
        return (await self._declared()).message_count or 0


@pytest.fixture
async def desk(
    store: Store, broker: Broker, broker_url: str, queue_prefix: str
) -> AsyncIterator[Desk]:
    async with await aio_pika.connect(broker_url) as connection:
        desk = Desk(store, broker, connection, queue_prefix)
        yield desk
        async with connection.channel() as channel:
            await channel.queue_delete(desk.queue)
            await channel.exchange_delete(desk.exchange)


def _when(condition: Callable[[], Any], expected: Any) -> Callable[[], Any]:
    async def holds() -> bool:
        return bool(await condition() == expected)

    return holds


async def test_records_of_a_message_are_added_once_and_it_is_acknowledged(desk: Desk) -> None:
    job_id = await desk.open()
    async with desk.reading():
        for _ in range(2):
            await desk.send(b'{"orders": [1, 2]}', "first")
        await desk.send(b'{"orders": []}', "empty")
        await desk.send(b'{"orders": [3]}', "second")
        await until(_when(lambda: _count(desk.store), 3))
        await until(_when(lambda: desk.inputs(job_id), ['{"n":1}', '{"n":2}', '{"n":3}']))
    await until(lambda: _read_out(desk))
    assert (await desk.store.reads.counters(job_id)).accepted == 3
    assert (await desk.store.reads.verify(job_id)).problems == []


async def _read_out(desk: Desk) -> bool:
    """Whether nothing is left. A reader may end between a commit and its acknowledgement."""
    async with desk.reading():
        await until(_when(desk.waiting, 0))
    return await desk.waiting() == 0


async def _count(store: Store) -> int:
    return len(await fetch(store, "select 1 from taken_keys"))


@pytest.mark.parametrize(
    ("body", "code"), [(b"not json", "NOT_JSON"), (b'{"other": 1}', "BAD_MESSAGE")]
)
async def test_bad_message_becomes_a_dead_letter_and_others_are_taken(
    desk: Desk, body: bytes, code: str
) -> None:
    job_id = await desk.open()
    async with desk.reading():
        await desk.send(body, "bad")
        await desk.send(b'{"orders": [1]}', "good")
        await until(_when(lambda: desk.inputs(job_id), ['{"n":1}']))
        dead = await next_of(await desk.broker.consume("dead", 1))
    assert dead.body == body
    assert dead.headers["x-holdfast-code"] == code
    assert dead.headers["x-holdfast-queue"] == desk.queue
    await dead.ack()
    assert await _count(desk.store) == 1, "the bad one is not remembered: it can be replayed"


async def test_message_that_fails_is_tried_again_and_leaves_nothing_half_done(desk: Desk) -> None:
    job_id = await desk.open()
    tries = 0

    async def fails_twice(tx: Any, message: Incoming) -> Sequence[Record]:
        nonlocal tries
        tries += 1
        switch = "insert into kill_switches values ('x', 'y', 'z', '2026-01-01T00:00:00Z')"
        await tx.execute(spelled(desk.store, switch))
        if tries < 3:
            raise ConnectionError("the shop is closed")
        return [Record({"n": tries})]

    async with desk.reading(fails_twice):
        await desk.send(b"{}", "only")
        await until(_when(lambda: desk.inputs(job_id), ['{"n":3}']))
    assert len(await fetch(desk.store, "select 1 from kill_switches where scope = 'x'")) == 1


@pytest.mark.parametrize("refusal", ["kill switch", "backlog"])
async def test_message_that_cannot_be_taken_now_is_held_however_long(
    desk: Desk, refusal: str
) -> None:
    """It would otherwise become a dead letter within seconds, and so would all behind it."""
    job_id = await desk.open()
    tries = 0

    async def take(tx: Any, message: Incoming) -> Sequence[Record]:
        nonlocal tries
        tries += 1
        if refusal == "backlog" and tries < 7:
            raise Throttled("too many items are waiting already", 1.0)
        return await take_orders(tx, message)

    switch = "values ('pipeline:orders', 'y', 'z', '2026-01-01T00:00:00Z')"
    if refusal == "kill switch":
        await execute(desk.store, f"insert into kill_switches {switch}")
    async with desk.reading(take, prefetch=1):
        await desk.send(b'{"orders": [7]}')

        async def is_held() -> bool:
            return tries >= 6

        await until(is_held)
        await execute(desk.store, "delete from kill_switches")
        await until(_when(lambda: desk.inputs(job_id), ['{"n":7}']))


async def test_queue_of_others_is_read_as_it_is(desk: Desk) -> None:
    job_id = await desk.open()
    async with desk.connection.channel() as channel:
        await channel.declare_exchange(desk.exchange, "topic", durable=True)
        queue = await channel.declare_queue(desk.queue, durable=True)
        await queue.bind(desk.exchange, "#")
    await desk.send(b'{"orders": [7]}')
    async with desk.reading(declares=False, prefetch=1):
        await until(_when(lambda: desk.inputs(job_id), ['{"n":7}']))


def test_our_own_queues_are_refused(broker: Broker) -> None:
    for name in ("orders", f"{broker.topology.prefix}.anything"):
        with pytest.raises(PipelineError, match="Holdfast's own"):
            ForeignQueue(broker.topology, QueueConsumer(name, take_orders))
    with pytest.raises(PipelineError, match="prefetch 0"):
        QueueConsumer("orders", take_orders, prefetch=0)


async def test_what_is_prepared_reaches_the_transaction_and_topics_have_jobs_of_their_own(
    desk: Desk,
) -> None:
    tries = 0

    async def prepare(message: Incoming) -> str:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise FilesGone("the bucket is away")
        return f"shop {message.json()['shop']}"

    async def take(tx: Any, message: Incoming) -> Topic:
        return Topic(message.prepared, [Record({"shop": message.prepared})])

    async def topics() -> list[Any]:
        return await fetch(desk.store, "select topic, standing from jobs order by topic")

    async with desk.reading(take, prepare=prepare, prefetch=1):
        for shop in (1, 2, 1):
            await desk.send(b'{"shop": %d}' % shop)
        await until(_when(topics, [("shop 1", 1), ("shop 2", 1)]))
        await until(_when(lambda: _items(desk.store), 3))
    assert tries == 5, "a file store that is away costs no message its tries"


async def _items(store: Store) -> int:
    return len(await fetch(store, "select 1 from items"))


async def test_message_that_a_stopped_consumer_holds_is_sent_again_and_not_counted(
    desk: Desk,
) -> None:
    """Given back, it would be a dead letter after three stops."""
    began = asyncio.Event()

    async def take_later(tx: Any, message: Incoming) -> Sequence[Record]:
        began.set()
        raise Throttled("too many items are waiting already", 5)

    await desk.open()
    async with desk.reading(take_later):
        await desk.send(b'{"orders": [1]}', "one", shop="north")
        await began.wait()
    await until(_when(desk.waiting, 0))
    sql = "select message_id, exchange, routing_key, headers, payload from outbox"
    (row,) = [row for row in await fetch(desk.store, sql) if row[1] is not None]
    assert (row[0], row[1], row[2]) == ("one", "", desk.queue)
    assert (orjson.loads(row[3]), bytes(row[4])) == ({"shop": "north"}, b'{"orders": [1]}')
