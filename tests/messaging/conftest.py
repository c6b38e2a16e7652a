"""A broker of the test's own queues, and what it logged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import aio_pika
import pytest
from aio_pika.abc import AbstractChannel
from structlog.typing import FilteringBoundLogger

from holdfast.messaging.broker import Broker, Outgoing, open_broker
from holdfast.messaging.consumer import Consumer
from holdfast.messaging.delivery import Delivery
from tests.chaos.children import Children
from tests.fleet import broker_settings, forget_queues
from tests.messaging.fleet_scene import Fleet
from tests.rabbitmq import RabbitServer

PATIENCE_SECONDS = 180.0


class LogBook:
    """A logger that keeps its events, and lets a test wait for one."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self._written = asyncio.Event()

    def debug(self, event: str, **fields: Any) -> None:
        self.events.append((event, fields))
        self._written.set()

    info = warning = error = debug

    def named(self, event: str) -> list[dict[str, Any]]:
        return [fields for name, fields in self.events if name == event]

    async def wait_for(self, event: str, count: int = 1) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(self.named(event)) < count:
                self._written.clear()
                await self._written.wait()
        return self.named(event)[count - 1]


@pytest.fixture
def log() -> LogBook:
    return LogBook()


OpenBroker = Callable[..., Awaitable[Broker]]


@pytest.fixture
async def open_test_broker(
    broker_url: str, queue_prefix: str, log: LogBook
) -> AsyncIterator[OpenBroker]:
    """`await open_test_broker(url)` opens a broker that is closed after the test."""
    opened: list[Broker] = []

    async def open_(url: str = broker_url, **options: Any) -> Broker:
        broker = await open_broker(url, queue_prefix, cast(FilteringBoundLogger, log), **options)
        opened.append(broker)
        return broker

    yield open_
    for broker in opened:
        await broker.close()


@pytest.fixture
async def broker(open_test_broker: OpenBroker) -> Broker:
    return await open_test_broker()


@pytest.fixture
async def admin(broker_url: str) -> AsyncIterator[AbstractChannel]:
    """Another program's channel, without confirms getting in the way."""
    async with await aio_pika.connect(broker_url) as connection:
        yield await connection.channel()


def outgoing(queue: str = "orders", body: bytes = b"{}") -> Outgoing:
    return Outgoing(queue, str(uuid4()), body)


async def next_of(consumer: Consumer) -> Delivery:
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await anext(consumer)


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Waits until something far away has happened."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await holds():
            await asyncio.sleep(0.02)


@pytest.fixture
def fleet(
    postgres_url: str, broker_url: str, rabbit_server: RabbitServer, tmp_path: Path,
    children: Children,
) -> Iterator[Fleet]:  # fmt: skip
    """Nothing of it runs until the test starts it."""
    settings = broker_settings(broker_url)
    yield Fleet(postgres_url, tmp_path, children, settings, rabbit_server)
    children.close()
    rabbit_server.start()
    forget_queues(settings)
