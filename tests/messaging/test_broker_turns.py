"""Orders of other programs are followed as they come; only slices wait for their turn."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest
import structlog

from holdfast.cli.broker_composition import broker_turns
from holdfast.cli.composition import worker_options
from holdfast.engine.control import Control
from holdfast.engine.turns import Places
from holdfast.messaging.broker import Outgoing
from holdfast.messaging.broker_turns import BrokerTurns
from holdfast.model import SliceKind
from holdfast.observe.metrics import Metrics
from holdfast.pipeline import pipeline
from holdfast.settings import load_settings
from holdfast.store import Store, open_store
from tests.messaging.conftest import OpenBroker, until
from tests.messaging.fleet_scene import message, slice_of

NONE_FREE = Places(0, 0)


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
