"""Dead messages: which become one, and what is recorded."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from aio_pika import Message
from aio_pika.abc import AbstractChannel
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.typing import FilteringBoundLogger

from holdfast.errors import BadEnvelope, DatabaseGone
from holdfast.kernel import DeadMessage
from holdfast.messaging.broker import Broker, Outgoing
from holdfast.messaging.dead import describe, keep_dead_messages
from holdfast.messaging.delivery import Delivery
from holdfast.messaging.envelope import JobWork, compose, dump, parse
from holdfast.messaging.topology import Topology
from tests.messaging.conftest import LogBook, OpenBroker, next_of, outgoing, until

MESSAGE_ID = "8c5ff1a4-5b0c-4f0e-9a53-0d5c2f6a7b10"


def work_message() -> Outgoing:
    envelope = compose(
        JobWork(job_id=7),
        message_id=MESSAGE_ID,
        correlation_id="job-7",
        job_id=7,
        created_at=datetime(2026, 3, 1, tzinfo=UTC),
        max_attempts=3,
    )
    return Outgoing("orders", MESSAGE_ID, dump(envelope))


class Keeper:
    """What a database would do: keeps a message once, and may be gone for a while."""

    def __init__(self) -> None:
        self.kept: dict[str, DeadMessage] = {}
        self.failures_left = 0
        self._arrived = asyncio.Event()

    async def keep(self, dead: DeadMessage) -> None:
        if self.failures_left:
            self.failures_left -= 1
            raise DatabaseGone("for now")
        self.kept.setdefault(dead.message_id, dead)
        self._arrived.set()

    async def first(self) -> DeadMessage:
        async with asyncio.timeout(60):
            await self._arrived.wait()
        return next(iter(self.kept.values()))


@pytest.fixture
async def keeper(broker: Broker, log: LogBook) -> AsyncIterator[Keeper]:
    keeper = Keeper()
    consumer = await broker.consume("dead", 10)
    running = asyncio.create_task(
        keep_dead_messages(
            consumer,
            broker.topology,
            keeper.keep,
            cast(FilteringBoundLogger, log),
            random.Random(1),
        )
    )
    yield keeper
    await consumer.stop()
    await running


async def test_message_whose_consumer_dies_three_times_is_dead_with_its_history(
    open_test_broker: OpenBroker, broker: Broker, keeper: Keeper
) -> None:
    sent = work_message()
    await broker.publish([sent])
    counts = []
    for _ in range(3):
        dying = await open_test_broker()
        counts.append((await next_of(await dying.consume("orders", 1))).delivery_count)
        await dying.close()
    dead = await keeper.first()
    assert counts == [0, 1, 2]
    assert (dead.message_id, dead.payload) == (sent.message_id, sent.body)
    assert (dead.job_id, dead.queue) == (7, "orders")
    assert dead.code == "DELIVERY_LIMIT" and "3 times" in dead.reason
    (death,) = dead.history
    assert (death["queue"], death["reason"], death["deliveries"]) == ("orders", "delivery_limit", 3)
    assert datetime.fromisoformat(death["at"]).tzinfo is not None
    assert await broker.depth("orders") == 0


async def test_malformed_message_is_dead_at_once_with_its_reason(
    broker: Broker, keeper: Keeper, log: LogBook
) -> None:
    await broker.publish([outgoing(body=b'{"header": {"type": "slice.eat", "job_id": 9}}')])
    delivery = await next_of(await broker.consume("orders", 1))
    with pytest.raises(BadEnvelope) as caught:
        parse(delivery.body, 1000)
    await delivery.reject_to_dead(caught.value.code, caught.value.reason)
    dead = await keeper.first()
    assert (dead.code, dead.reason) == ("MALFORMED", caught.value.reason)
    assert (dead.job_id, dead.queue) == (9, "orders")
    assert (dead.history[0]["reason"], dead.history[0]["deliveries"]) == ("MALFORMED", 1)
    assert log.named("message.dead")[0]["code"] == "MALFORMED"
    assert await broker.depth("orders") == 0


async def test_message_over_the_limit_is_dead_with_its_size(broker: Broker, keeper: Keeper) -> None:
    large = outgoing(body=b'"' + b"x" * 200_000 + b'"')
    assert await broker.publish([large]) == [None]
    delivery = await next_of(await broker.consume("orders", 1))
    with pytest.raises(BadEnvelope) as caught:
        parse(delivery.body, 64 * 1024)
    await delivery.reject_to_dead(caught.value.code, caught.value.reason)
    dead = await keeper.first()
    assert dead.code == "TOO_LARGE" and "200,002" in dead.reason
    assert dead.payload == large.body


async def test_reason_of_any_length_and_letters_arrives(broker: Broker, keeper: Keeper) -> None:
    await broker.publish([outgoing()])
    delivery = await next_of(await broker.consume("orders", 1))
    await delivery.reject_to_dead("REFUSED", "ngoài\0 " * 500)
    dead = await keeper.first()
    assert dead.reason.startswith("ngoài� ngoài") and len(dead.reason) <= 1000


async def test_message_of_another_program_is_described_as_far_as_it_goes(
    broker: Broker, admin: AbstractChannel, queue_prefix: str, keeper: Keeper
) -> None:
    exchange = await admin.get_exchange(f"{queue_prefix}.dead")
    await exchange.publish(Message(b"\xff\x00 not ours"), routing_key="")
    dead = await keeper.first()
    assert (dead.code, dead.job_id) == ("UNEXPLAINED", None)
    assert dead.queue == "orders"
    assert dead.payload == b"\xff\x00 not ours"
    assert dead.message_id


async def test_message_is_acknowledged_only_after_it_is_kept(
    broker: Broker, keeper: Keeper, log: LogBook
) -> None:
    keeper.failures_left = 2
    await broker.publish([outgoing()])
    await (await next_of(await broker.consume("orders", 1))).reject_to_dead("REFUSED", "no")
    await log.wait_for("dead.failed", 2)
    assert (await keeper.first()).code == "REFUSED"

    async def acknowledged() -> bool:
        return await broker.depth("dead") == 0

    await until(acknowledged)
    assert len(keeper.kept) == 1


async def test_rejected_without_a_reason_is_explained_by_its_payload(
    broker: Broker, keeper: Keeper
) -> None:
    await broker.publish([outgoing(body=b"{")])
    delivery = await next_of(await broker.consume("orders", 1))
    await delivery._message.reject(requeue=False)
    dead = await keeper.first()
    assert (dead.code, dead.queue) == ("NOT_JSON", "orders")


async def test_message_is_dead_even_if_its_copy_cannot_be_confirmed(
    broker: Broker, admin: AbstractChannel, queue_prefix: str
) -> None:
    await broker.publish([work_message()])
    delivery = await next_of(await broker.consume("orders", 1))
    # A copy is unroutable now; RabbitMQ's own dead-lettering waits for the queue to come back.
    dead_queue = await admin.get_queue(f"{queue_prefix}.dead")
    await dead_queue.unbind(f"{queue_prefix}.dead", "dead")
    await delivery.reject_to_dead("REFUSED", "no")
    await dead_queue.bind(f"{queue_prefix}.dead", "dead")

    async def arrived() -> bool:
        return await broker.depth("dead") == 1

    await until(arrived)
    found = describe(await next_of(await broker.consume("dead", 1)), broker.topology)
    assert (found.message_id, found.code) == (MESSAGE_ID, "REJECTED")


HEADER_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.datetimes() | st.binary(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
DEATHS = st.lists(
    st.dictionaries(
        st.sampled_from(["queue", "reason", "count", "time", "exchange"]), HEADER_VALUES
    )
    | HEADER_VALUES,
    max_size=3,
)
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "x-death": DEATHS | HEADER_VALUES,
        "x-holdfast-code": HEADER_VALUES,
        "x-holdfast-reason": HEADER_VALUES,
        "x-holdfast-queue": HEADER_VALUES,
    },
)


@settings(max_examples=500)
@given(
    st.binary(max_size=200) | st.text().map(lambda text: text.encode("utf-8", "ignore")), HEADERS
)
def test_whatever_is_dead_can_be_described(body: bytes, headers: dict[str, Any]) -> None:
    nothing = cast(Any, None)
    delivery = Delivery(body, None, "dead", 0, False, headers, nothing, nothing, nothing)
    dead = describe(delivery, Topology("holdfast"))
    assert dead == describe(delivery, Topology("holdfast"))
    assert dead.message_id and dead.code and dead.reason
    assert "\0" not in f"{dead.code}{dead.reason}{dead.queue}{dead.history}"
