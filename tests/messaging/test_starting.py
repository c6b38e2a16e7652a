"""Opening a broker that is not there, does not let us in, or has queues of another form."""

from __future__ import annotations

import asyncio
from functools import partial

import aio_pika
import pytest
from aio_pika import Exchange, ExchangeType, Queue
from aio_pika.abc import AbstractChannel

from holdfast.errors import BrokerGone, UserError
from holdfast.messaging.broker import Broker
from tests.messaging.conftest import LogBook, OpenBroker, next_of, outgoing, until
from tests.proxy import Proxy
from tests.rabbitmq import RabbitServer


async def test_absent_broker_is_reported_and_waited_for(
    broker_url: str, open_test_broker: OpenBroker, log: LogBook
) -> None:
    async with Proxy(broker_url) as proxy:
        await proxy.refuse()
        opening = asyncio.ensure_future(open_test_broker(proxy.url))
        gone = await log.wait_for("broker.gone")
        assert gone["url"] == proxy.url.replace("guest:guest", "guest:***")
        assert not opening.done()
        await proxy.accept()
        broker = await opening
        assert log.named("broker.back")
        assert len(log.named("broker.gone")) == 1
        assert await broker.publish([outgoing()]) == [None]


@pytest.mark.slow
async def test_broker_that_is_started_later_is_found(
    rabbit_server: RabbitServer, open_test_broker: OpenBroker, log: LogBook
) -> None:
    await asyncio.to_thread(rabbit_server.stop)
    opening = asyncio.ensure_future(open_test_broker())
    await log.wait_for("broker.gone")
    await asyncio.to_thread(rabbit_server.start)
    broker = await opening
    assert await broker.publish([outgoing()]) == [None]


async def test_connection_that_is_cut_at_any_moment_of_the_opening_is_made_again(
    broker_url: str, open_test_broker: OpenBroker
) -> None:
    async with Proxy(broker_url) as proxy:
        for moment in range(20):
            opening = asyncio.ensure_future(open_test_broker(proxy.url))
            await asyncio.sleep(moment * 0.004)
            await proxy.cut()
            broker = await asyncio.wait_for(opening, 30)
            await until(partial(_answers, broker))
            await broker.close()


async def _answers(broker: Broker) -> bool:
    """The connection may have been open when it was cut, and lost only now."""
    try:
        return await broker.depth("orders") == 0
    except BrokerGone:
        return False


async def test_waiting_for_an_absent_broker_can_be_cancelled(
    broker_url: str, open_test_broker: OpenBroker, log: LogBook
) -> None:
    async with Proxy(broker_url) as proxy:
        await proxy.refuse()
        opening = asyncio.ensure_future(open_test_broker(proxy.url))
        await log.wait_for("broker.gone")
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening


@pytest.mark.parametrize("credentials", ["guest:wrong-word", "nobody:wrong-word"])
async def test_wrong_credentials_are_reported_at_once_without_the_password(
    credentials: str, broker_url: str, open_test_broker: OpenBroker
) -> None:
    with pytest.raises(UserError) as caught:
        await open_test_broker(broker_url.replace("guest:guest", credentials))
    assert "does not accept the user or password" in caught.value.message
    assert "wrong-word" not in caught.value.message
    assert "HOLDFAST_BROKER_URL" in (caught.value.hint or "")


async def test_unknown_virtual_host_is_reported_with_the_commands_that_fix_it(
    broker_url: str, open_test_broker: OpenBroker
) -> None:
    with pytest.raises(UserError) as caught:
        await open_test_broker(f"{broker_url}no-such-place")
    assert "no-such-place" in caught.value.message
    assert "rabbitmqctl add_vhost" in (caught.value.hint or "")


async def test_queue_with_other_arguments_is_explained_with_the_command_that_fixes_it(
    admin: AbstractChannel, queue_prefix: str, open_test_broker: OpenBroker
) -> None:
    arguments = {"x-queue-type": "quorum", "x-delivery-limit": 9}
    await admin.declare_queue(f"{queue_prefix}.dead", durable=True, arguments=arguments)
    with pytest.raises(UserError) as caught:
        await open_test_broker()
    told = f"the queue {queue_prefix}.dead exists with other arguments: x-delivery-limit is 9"
    assert caught.value.message.startswith(told)
    assert "holdfast broker reset dead" in (caught.value.hint or "")


async def test_queue_of_another_type_is_explained(
    admin: AbstractChannel, queue_prefix: str, open_test_broker: OpenBroker
) -> None:
    await admin.declare_queue(f"{queue_prefix}.dead", durable=True)
    with pytest.raises(UserError) as caught:
        await open_test_broker()
    assert caught.value.message in (
        f"the queue {queue_prefix}.dead exists with other arguments: {difference}"
        for difference in (
            "x-queue-type is not set, Holdfast needs quorum",
            "x-delivery-limit is not set, Holdfast needs 1000000",
        )
    )


async def test_exchange_of_another_type_is_explained(
    admin: AbstractChannel, queue_prefix: str, open_test_broker: OpenBroker
) -> None:
    await admin.declare_exchange(f"{queue_prefix}.work", ExchangeType.TOPIC, durable=True)
    with pytest.raises(UserError) as caught:
        await open_test_broker()
    assert caught.value.message == (
        f"the exchange {queue_prefix}.work exists with other arguments: "
        "type is topic, Holdfast needs direct"
    )
    assert "HOLDFAST_QUEUE_PREFIX" in (caught.value.hint or "")


async def test_missing_permissions_are_reported_with_the_command_that_fixes_them(
    rabbit_server: RabbitServer, broker_url: str, open_test_broker: OpenBroker, queue_prefix: str
) -> None:
    ours = f"^{queue_prefix}[.]"
    url = broker_url.replace("guest:guest", "limited:limited")
    rabbit_server.control("add_user", "limited", "limited")
    try:
        for rights in (("^$", ours, ours), (ours, "^$", ours), (ours, ours, "[.](work|dead)$")):
            rabbit_server.control("set_permissions", "limited", *rights)
            with pytest.raises(UserError, match="not allowed to declare or use") as caught:
                await open_test_broker(url)
            assert f"'{ours}'" in (caught.value.hint or "")
        rabbit_server.control("set_permissions", "limited", ours, ours, ours)
        broker = await open_test_broker(url)
        assert await broker.publish([outgoing()]) == [None]
        assert (await next_of(await broker.consume("orders", 1))).delivery_count == 0
        await broker.close()
    finally:
        rabbit_server.control("delete_user", "limited")


async def test_what_was_declared_is_declared_again_without_harm(
    open_test_broker: OpenBroker,
) -> None:
    first = await open_test_broker()
    await first.publish([outgoing()])
    second = await open_test_broker()
    assert await second.depth("orders") == 1


async def test_depth_of_a_queue_that_is_gone_is_nothing(
    open_test_broker: OpenBroker, admin: AbstractChannel, queue_prefix: str
) -> None:
    broker = await open_test_broker()
    await admin.queue_delete(f"{queue_prefix}.orders")
    assert await broker.depth("orders") == 0
    assert await broker.depth("work.prices") == 0


async def test_exchange_that_is_deleted_while_queues_are_declared_is_declared_again(
    broker_url: str, open_test_broker: OpenBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody cleans up; a worker that starts at that moment must not end."""
    bind, deleted = Queue.bind, []

    async def bind_too_late(queue: Queue, exchange: Exchange, **more: str) -> object:
        if not deleted:
            deleted.append(exchange.name)
            async with await aio_pika.connect(broker_url) as connection:
                await (await connection.channel()).exchange_delete(exchange.name)
        return await bind(queue, exchange, **more)

    monkeypatch.setattr(Queue, "bind", bind_too_late)
    broker = await open_test_broker(broker_url)
    assert deleted and await broker.depth("orders") == 0
    assert await broker.publish([outgoing("orders")]) == [None]
