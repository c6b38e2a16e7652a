"""Consuming: across reconnects, with nothing lost and nothing settled behind our back."""

from __future__ import annotations

import asyncio

import pytest
from aio_pika.abc import AbstractChannel

from holdfast.messaging.broker import Broker
from holdfast.messaging.consumer import RETRY_SECONDS
from holdfast.messaging.delivery import Delivery
from tests.messaging.conftest import LogBook, OpenBroker, next_of, outgoing, until
from tests.proxy import Proxy
from tests.rabbitmq import RabbitServer


async def test_unacknowledged_message_comes_again_and_is_counted(
    open_test_broker: OpenBroker,
) -> None:
    first = await open_test_broker()
    await first.publish([outgoing()])
    await next_of(await first.consume("orders", 1))
    await first.close()
    second = await open_test_broker()
    again = await next_of(await second.consume("orders", 1))
    assert (again.delivery_count, again.redelivered) == (1, True)
    await again.ack()


async def test_prefetch_bounds_what_is_under_way(broker: Broker) -> None:
    await broker.publish([outgoing() for _ in range(5)])
    consumer = await broker.consume("orders", 2)
    held = [await next_of(consumer), await next_of(consumer)]
    assert await broker.depth("orders") == 3
    await held[0].ack()
    await next_of(consumer)
    assert await broker.depth("orders") == 2


async def test_consuming_continues_after_the_connection_was_cut(
    broker_url: str, open_test_broker: OpenBroker, log: LogBook
) -> None:
    async with Proxy(broker_url) as proxy:
        broker = await open_test_broker(proxy.url)
        consumer = await broker.consume("orders", 1)
        await broker.publish([outgoing(body=b"1")])
        held = await next_of(consumer)
        await proxy.cut()
        await log.wait_for("broker.back", 2)
        await held.ack()
        assert log.named("message.unsettled")[0]["message_id"] == held.message_id
        again = await next_of(consumer)
        assert (again.message_id, again.delivery_count) == (held.message_id, 1)
        await again.ack()
        await until(lambda: _sent(broker))
        assert (await next_of(consumer)).delivery_count == 0


async def _sent(broker: Broker) -> bool:
    return await broker.publish([outgoing()]) == [None]


async def test_what_was_buffered_on_a_lost_connection_is_not_handed_out_twice(
    broker_url: str, open_test_broker: OpenBroker, log: LogBook
) -> None:
    async with Proxy(broker_url) as proxy:
        broker = await open_test_broker(proxy.url)
        await broker.publish([outgoing() for _ in range(3)])
        consumer = await broker.consume("orders", 3)

        async def all_buffered() -> bool:
            return await broker.depth("orders") == 0

        await until(all_buffered)
        await proxy.cut()
        await log.wait_for("broker.back", 2)
        deliveries = [await next_of(consumer) for _ in range(3)]
        assert [each.delivery_count for each in deliveries] == [1, 1, 1]
        assert len({each.message_id for each in deliveries}) == 3


async def test_channel_closed_by_the_server_is_opened_again(broker: Broker) -> None:
    consumer = await broker.consume("orders", 1)
    await broker.publish([outgoing()])
    held = await next_of(consumer)
    await held.ack()
    # The server closes a channel that acknowledges the same delivery twice.
    underlay = held._message.channel
    await underlay.basic_ack(held._message.delivery_tag or 0)
    await broker.publish([outgoing()])
    assert (await next_of(consumer)).message_id != held.message_id


async def test_message_held_for_too_long_is_delivered_again_and_logged(
    rabbit_server: RabbitServer, open_test_broker: OpenBroker, log: LogBook
) -> None:
    limits = "application:set_env(rabbit, {}, {})"
    setting = ("consumer_timeout", 500), ("channel_tick_interval", 200)
    usual = ("consumer_timeout", 1_800_000), ("channel_tick_interval", 60_000)
    rabbit_server.control("eval", ", ".join(limits.format(*one) for one in setting) + ".")
    try:
        broker = await open_test_broker()
        await broker.publish([outgoing()])
        consumer = await broker.consume("orders", 1)
        held = await next_of(consumer)
        again = await next_of(consumer)
        assert (held.is_lost, again.delivery_count) == (True, 1)
        await again.ack()
        assert "timed out" in log.named("queue.lost")[0]["error"]
    finally:
        rabbit_server.control("eval", ", ".join(limits.format(*one) for one in usual) + ".")


async def test_queue_deleted_elsewhere_is_declared_and_consumed_again(
    broker: Broker, admin: AbstractChannel, queue_prefix: str, log: LogBook
) -> None:
    consumer = await broker.consume("orders", 1)
    await broker.publish([outgoing()])
    await (await next_of(consumer)).ack()
    await admin.queue_delete(f"{queue_prefix}.orders")
    await log.wait_for("queue.lost")
    await until(lambda: _sent(broker))
    await next_of(consumer)


async def test_queue_taken_by_another_form_is_reported_and_waited_for(
    broker: Broker, admin: AbstractChannel, queue_prefix: str, log: LogBook
) -> None:
    consumer = await broker.consume("orders", 1)
    await broker.publish([outgoing()])
    await (await next_of(consumer)).ack()
    other = f"{queue_prefix}.dead"
    await admin.queue_delete(other)
    await admin.declare_queue(other, durable=True)
    await admin.queue_delete(f"{queue_prefix}.orders")

    async def told() -> bool:
        return any("broker reset" in str(each) or "other arguments" in each["error"]
                   for each in log.named("queue.lost"))  # fmt: skip

    await until(told)
    await admin.queue_delete(other)
    await until(lambda: _sent(broker))
    await next_of(consumer)


async def test_stopping_gives_back_unstarted_messages_and_lets_the_rest_be_settled(
    broker: Broker,
) -> None:
    await broker.publish([outgoing() for _ in range(4)])
    consumer = await broker.consume("orders", 3)
    begun = await next_of(consumer)
    await consumer.stop()
    with pytest.raises(StopAsyncIteration):
        await anext(consumer)

    async def given_back() -> bool:
        return await broker.depth("orders") == 3

    await until(given_back)
    await begun.ack()
    await consumer.close()
    assert await broker.depth("orders") == 3


async def test_what_stopping_hands_back_is_not_followed_by_more(broker: Broker) -> None:
    """An acknowledgement makes room, which the broker would fill at once."""
    await broker.publish([outgoing() for _ in range(4)])
    consumer = await broker.consume("orders", 1)

    async def one_waits() -> bool:
        return await broker.depth("orders") == 3

    await until(one_waits)
    handed_back = []

    async def hand_back(delivery: Delivery) -> None:
        handed_back.append(delivery.message_id)
        await delivery.ack()

    await consumer.stop(hand_back)
    other = await broker.consume("orders", 3)
    counts = [(await next_of(other)).delivery_count for _ in range(3)]
    assert (len(handed_back), counts) == (1, [0, 0, 0])


async def test_consumer_stopped_while_the_broker_is_gone_takes_nothing_when_it_is_back(
    open_test_broker: OpenBroker,
    broker: Broker,
    broker_url: str,
    admin: AbstractChannel,
    log: LogBook,
) -> None:
    async def is_subscribed() -> bool:
        name = broker.topology.queue("orders")
        found = await admin.declare_queue(name, passive=True)
        return found.declaration_result.consumer_count == 1

    async with Proxy(broker_url) as proxy:
        distant = await open_test_broker(proxy.url)
        consumer = await distant.consume("orders", 1)
        await until(is_subscribed)
        await proxy.refuse()
        await log.wait_for("broker.gone", 2)
        await asyncio.sleep(2 * RETRY_SECONDS)  # it waits for the connection now
        await consumer.stop()
        await proxy.accept()
        await log.wait_for("broker.back", 2)
        await asyncio.sleep(1)  # for the next consumer of its queue
        await broker.publish([outgoing()])
        nearby = await next_of(await broker.consume("orders", 1))
        assert nearby.delivery_count == 0


async def test_stopping_ends_every_iteration(broker: Broker) -> None:
    consumer = await broker.consume("orders", 1)

    async def drain() -> int:
        return len([delivery async for delivery in consumer])

    drains = [asyncio.create_task(drain()) for _ in range(3)]
    await asyncio.sleep(0)
    await consumer.stop()
    assert await asyncio.gather(*drains) == [0, 0, 0]


@pytest.mark.slow
async def test_consuming_continues_after_a_stop_and_start_of_the_server(
    rabbit_server: RabbitServer, broker: Broker, log: LogBook
) -> None:
    consumer = await broker.consume("orders", 1)
    await broker.publish([outgoing() for _ in range(3)])
    held = await next_of(consumer)
    await asyncio.to_thread(rabbit_server.restart)
    await log.wait_for("broker.back", 2)
    await held.ack()
    seen = []
    for _ in range(3):
        delivery = await next_of(consumer)
        seen.append(delivery.message_id)
        await delivery.ack()
    assert len(set(seen)) == 3 and held.message_id in seen


@pytest.mark.slow
async def test_peer_that_falls_silent_is_noticed_by_its_missing_heartbeats(
    broker_url: str, open_test_broker: OpenBroker, log: LogBook
) -> None:
    async with Proxy(broker_url) as proxy:
        broker = await open_test_broker(proxy.url)
        consumer = await broker.consume("orders", 1)
        await broker.publish([outgoing()])
        held = await next_of(consumer)
        proxy.stall()
        await log.wait_for("broker.gone", 2)
        await proxy.cut()
        proxy.flow()
        again = await next_of(consumer)
        assert again.message_id == held.message_id
