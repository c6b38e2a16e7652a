"""Publishing: each message is confirmed, or the reason is returned."""

from __future__ import annotations

import asyncio

import pytest
from aio_pika.abc import AbstractChannel

from holdfast.messaging.broker import Broker, Outgoing
from tests.messaging.conftest import LogBook, OpenBroker, next_of, outgoing, until
from tests.proxy import Proxy
from tests.rabbitmq import RabbitServer


async def test_published_message_arrives_as_it_was_sent(broker: Broker) -> None:
    sent = Outgoing("orders", "2c0f6a1e-0000-4000-8000-000000000001", b'{"a": 1}', {"x-kind": "a"})
    assert await broker.publish([sent]) == [None]
    delivery = await next_of(await broker.consume("orders", 1))
    assert (delivery.body, delivery.message_id) == (sent.body, sent.message_id)
    assert (delivery.delivery_count, delivery.redelivered) == (0, False)
    assert delivery.headers["x-kind"] == "a"
    await delivery.ack()


async def test_a_batch_is_confirmed_as_a_whole(broker: Broker) -> None:
    assert await broker.publish([outgoing() for _ in range(500)]) == [None] * 500
    assert await broker.depth("orders") == 500


async def test_a_queue_of_each_kind_gets_its_own(broker: Broker) -> None:
    words = ["orders", "work.prices", "work.posts"]
    assert [await broker.declare(word) for word in words] == [0] * 3
    await broker.publish([outgoing(word) for word in words])
    assert [await broker.depth(word) for word in words] == [1] * 3
    assert await broker.declare("work.posts") == 1


async def test_message_for_another_exchange_arrives_and_a_missing_one_fails_alone(
    broker: Broker, admin: AbstractChannel, queue_prefix: str
) -> None:
    theirs = f"{queue_prefix}.theirs"
    exchange = await admin.declare_exchange(theirs, "topic", auto_delete=True)
    queue = await admin.declare_queue(f"{queue_prefix}.new", exclusive=True)
    await queue.bind(exchange, "orders.*")
    messages = [
        Outgoing("orders.new", "a", b"[1]", {"kind": "order"}, theirs),
        Outgoing("orders.new", "b", b"[2]", {}, f"{queue_prefix}.missing"),
        Outgoing("nobody.listens", "c", b"[3]", {}, theirs),
        Outgoing(queue.name, "d", b"[4]", {}, ""),
        outgoing(),
    ]
    answers = await broker.publish(messages)
    assert [answer is None for answer in answers] == [True, False, True, True, True]
    assert "missing' cannot be used" in str(answers[1])
    arrived = {(await queue.get(timeout=30)).message_id for _ in range(2)}
    assert arrived == {"a", "d"}


async def test_unroutable_message_is_reported_and_its_neighbours_are_sent(broker: Broker) -> None:
    first, second, third = await broker.publish([outgoing(), outgoing("nowhere"), outgoing()])
    assert (first, third) == (None, None)
    assert second is not None and second.startswith("unroutable: no queue takes 'nowhere'")


async def test_message_that_cannot_be_written_is_reported_alone(broker: Broker) -> None:
    strange = Outgoing("orders", "x" * 300, b"{}")
    good, bad = await broker.publish([outgoing(), strange])
    assert good is None
    assert bad is not None and bad.startswith("it cannot be sent")
    assert await broker.publish([outgoing()]) == [None]


async def test_message_that_the_broker_refuses_is_reported(
    broker: Broker, rabbit_server: RabbitServer, queue_prefix: str
) -> None:
    pattern, limit = f"^{queue_prefix}[.]orders$", '{"max-length":1}'
    rabbit_server.control("set_policy", queue_prefix, pattern, limit, "--apply-to", "queues")

    async def refused() -> bool:
        (reason,) = await broker.publish([outgoing()])
        return reason is not None and reason.startswith("the broker refused it")

    await until(refused)
    rabbit_server.control("clear_policy", queue_prefix)


async def test_exchange_deleted_elsewhere_is_declared_again(
    broker: Broker, admin: AbstractChannel, queue_prefix: str
) -> None:
    await admin.exchange_delete(f"{queue_prefix}.work")
    (lost,) = await broker.publish([outgoing()])
    assert lost is not None and "no exchange" in lost

    async def sent() -> bool:
        return await broker.publish([outgoing()]) == [None]

    await until(sent)


@pytest.mark.parametrize("gone", ["queue", "binding"])
async def test_queue_that_was_deleted_or_unbound_is_declared_again(
    gone: str, broker: Broker, admin: AbstractChannel, queue_prefix: str
) -> None:
    """Where no worker is there who would notice."""
    if gone == "queue":
        await admin.queue_delete(f"{queue_prefix}.orders")
    else:
        queue = await admin.get_queue(f"{queue_prefix}.orders")
        await queue.unbind(f"{queue_prefix}.work", "orders")
    (lost,) = await broker.publish([outgoing()])
    assert lost is not None and lost.startswith("unroutable")
    assert await broker.publish([outgoing()]) == [None]


async def test_unconfirmed_message_is_given_up_in_time(
    broker_url: str, open_test_broker: OpenBroker
) -> None:
    async with Proxy(broker_url) as proxy:
        broker = await open_test_broker(proxy.url, confirm_seconds=0.2)
        proxy.stall()
        assert await broker.publish([outgoing()]) == ["not confirmed within 0.2 s"]
        proxy.flow()
        assert await broker.publish([outgoing()]) == [None]


async def test_connection_cut_in_mid_publish_is_reported_for_each_and_healed(
    broker_url: str, open_test_broker: OpenBroker, log: LogBook
) -> None:
    async with Proxy(broker_url) as proxy:
        broker = await open_test_broker(proxy.url)
        proxy.stall()
        sending = broker.publish([outgoing() for _ in range(20)])
        under_way = asyncio.ensure_future(sending)
        await asyncio.sleep(0.05)
        await proxy.cut()
        reasons = await under_way
        assert len(reasons) == 20
        assert all(reason and reason.startswith("the connection was lost") for reason in reasons)
        proxy.flow()
        await log.wait_for("broker.back")
        assert await broker.publish([outgoing()]) == [None]


async def test_publishing_while_the_broker_is_gone_says_so_at_once(
    broker_url: str, open_test_broker: OpenBroker, log: LogBook
) -> None:
    async with Proxy(broker_url) as proxy:
        broker = await open_test_broker(proxy.url)
        await proxy.refuse()
        await log.wait_for("broker.gone")
        (reason,) = await broker.publish([outgoing()])
        assert reason is not None and reason.startswith("the broker cannot be reached")
        assert not broker.is_up
        await proxy.accept()
        await log.wait_for("broker.back")
        assert await broker.publish([outgoing()]) == [None]


@pytest.mark.slow
async def test_messages_outlive_a_stop_and_start_of_the_server(
    rabbit_server: RabbitServer, broker: Broker, log: LogBook
) -> None:
    assert await broker.publish([outgoing() for _ in range(50)]) == [None] * 50
    await asyncio.to_thread(rabbit_server.restart)
    await log.wait_for("broker.back")

    async def all_there() -> bool:
        return await broker.depth("orders") == 50

    await until(all_there)
    assert await broker.publish([outgoing()]) == [None]


@pytest.mark.slow
async def test_messages_outlive_a_killed_server(
    rabbit_server: RabbitServer, broker: Broker, log: LogBook
) -> None:
    # RabbitMQ 3.10 writes a queue's registration down half a second after it was declared; a crash
    # before that loses the queue with its confirmed messages. A stop in order writes it.
    await asyncio.to_thread(rabbit_server.restart)
    await log.wait_for("broker.back")
    assert await broker.publish([outgoing() for _ in range(50)]) == [None] * 50
    rabbit_server.stop_hard()
    await log.wait_for("broker.gone", 2)
    await asyncio.to_thread(rabbit_server.start)
    await log.wait_for("broker.back", 2)

    async def all_there() -> bool:
        return await broker.depth("orders") == 50

    await until(all_there)
