"""The fleet as a mode of the suites: PostgreSQL, RabbitMQ and a relay, with queues of its own.

`EVERY_MODE` are the parameters of a `database_url` fixture that knows all three.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import aio_pika
import pytest

from tests.chaos.children import Child, Children
from tests.command import HoldfastCommand

FLEET = "fleet"
_FLEET = pytest.param(FLEET, marks=[pytest.mark.postgres, pytest.mark.rabbit])
EVERY_MODE = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres), _FLEET]

#: For tests that show the same on both databases, but not with messages.
on_sqlite_and_fleet = pytest.mark.parametrize("database_url", ["sqlite", _FLEET], indirect=True)

#: Those of pipelines are the ones of the failure tests.
QUEUES = ("orders", "dead", "work.deeds", "work.saving", "work.finding", "work.flowing")
EXCHANGES = ("work", "dead")
PATIENCE_SECONDS = 180.0

HASTE = {"HOLDFAST_RELAY_POLL_SECONDS": "0.05"}


def broker_settings(broker_url: str) -> dict[str, str]:
    """A broker for the processes of one test, with queues of its own."""
    prefix = f"test-{uuid4().hex[:12]}"
    return {**HASTE, "HOLDFAST_BROKER_URL": broker_url, "HOLDFAST_QUEUE_PREFIX": prefix}


@contextmanager
def running_relay(database_url: str, settings: Mapping[str, str], folder: Path) -> Iterator[Child]:
    """A relay that must stop cleanly when asked to."""
    folder.mkdir(exist_ok=True)
    command = HoldfastCommand(database_url, folder, settings)
    children = Children(folder)
    relay = children.holdfast(["relay"], command.environment())
    try:
        yield relay
    finally:
        children.close()


def forget_queues(settings: Mapping[str, str]) -> None:
    """Removes what the processes of a test declared."""
    asyncio.run(_forget_queues(settings["HOLDFAST_BROKER_URL"], settings["HOLDFAST_QUEUE_PREFIX"]))


async def _forget_queues(broker_url: str, prefix: str) -> None:
    async with await aio_pika.connect(broker_url) as connection:
        channel = await connection.channel()
        for word in QUEUES:
            await channel.queue_delete(f"{prefix}.{word}")
        for word in EXCHANGES:
            await channel.exchange_delete(f"{prefix}.{word}")
