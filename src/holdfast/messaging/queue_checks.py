"""Checks the broker's queues, and recreates one: `doctor` and `broker reset`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from aio_pika.abc import AbstractConnection
from aio_pika.exceptions import ChannelNotFoundEntity

from holdfast.errors import BrokerGone, UserError
from holdfast.messaging.link import close_quietly, connect_once, loss_is_broker_gone
from holdfast.messaging.topology import DEAD_QUEUE, QUEUES, Topology, is_own, work_queue
from holdfast.model import Finding
from holdfast.urls import mask_password

#: Time for RabbitMQ to notify the consumers of a deleted queue before one of that name exists
#: again.
NOTIFY_SECONDS = 1.0


async def check(url: str, prefix: str, pipelines: Sequence[str] = ()) -> list[Finding]:
    """Returns what `holdfast doctor` says about the broker, with the queues of pipelines that have
    work. It changes nothing, and does not wait for the broker."""
    topology = Topology(prefix)
    try:
        connection = await connect_once(url, "doctor")
    except UserError as error:
        return [Finding("broker", False, error.message, error.hint)]
    except BrokerGone as error:
        text = f"{mask_password(url)} cannot be reached: {error}"
        return [Finding("broker", False, text, "Start it, or fix HOLDFAST_BROKER_URL.")]
    try:
        findings = [Finding("broker", True, f"connected to {mask_password(url)}")]
        for word in (*QUEUES, *map(work_queue, pipelines)):
            findings.append(await _check_queue(connection, topology, word))
        return findings
    except BrokerGone as error:
        text = f"{mask_password(url)} was lost: {error}"
        return [Finding("broker", False, text, "Check its log, then run this again.")]
    finally:
        await close_quietly(connection)


async def reset_queue(url: str, prefix: str, word: str, force: bool) -> int:
    """Deletes a queue and declares it again; returns how many messages were in it.

    Raises UserError if it holds any, unless forced. RabbitMQ cannot delete a quorum queue on the
    condition that it is empty, so a message that arrives at that moment is lost too."""
    topology = Topology(prefix)
    word = _queue_word(word, topology)
    connection = await connect_once(url, "broker reset")
    try:
        counts = await _counts(connection, topology.queue(word))
        depth = counts[0] if counts else 0
        if depth and not force:
            raise _refused(topology.queue(word), depth, word)
        async with loss_is_broker_gone():
            channel = connection.channel()
            await channel.initialize()
            await channel.queue_delete(topology.queue(word))
            await asyncio.sleep(NOTIFY_SECONDS)
            await topology.declare_queue(channel, word)
        return depth
    finally:
        await close_quietly(connection)


def _queue_word(given: str, topology: Topology) -> str:
    word = given.removeprefix(f"{topology.prefix}.")
    if not is_own(word):
        known = ", ".join([*QUEUES, work_queue("PIPELINE")])
        raise UserError(f"there is no queue {given!r}", f"Queues: {known}.")
    return word


def _refused(name: str, depth: int, word: str) -> UserError:
    if word == DEAD_QUEUE:
        return UserError(
            f"the queue {name} holds {depth:,} dead messages that the database does not have yet",
            "Let `holdfast relay` store them first, or discard them with --force.",
        )
    return UserError(
        f"the queue {name} holds {depth:,} messages",
        "With --force they are dropped. The database has all work, and a relay sends nudges again; "
        "only messages of other programs are lost.",
    )


async def _check_queue(connection: AbstractConnection, topology: Topology, word: str) -> Finding:
    name = topology.queue(word)
    counts = await _counts(connection, name)
    what = f"queue {name}"
    if counts is None:
        return Finding(
            what, True, "does not exist yet; the first process that needs it declares it"
        )
    try:
        async with loss_is_broker_gone():
            channel = connection.channel()
            await channel.initialize()
            # It exists, so this only compares.
            await topology.declare_queue(channel, word)
    except UserError as error:
        return Finding(what, False, error.message, error.hint)
    await close_quietly(channel)
    return _judged(what, word, *counts)


def _judged(what: str, word: str, depth: int, consumers: int) -> Finding:
    text = f"quorum queue, {depth:,} messages, {consumers:,} consumers"
    if depth and not consumers:
        command = "holdfast relay" if word == DEAD_QUEUE else "holdfast work PIPELINE.py"
        return Finding(what, False, text, f"Nothing consumes them; run: {command}")
    return Finding(what, True, text)


async def _counts(connection: AbstractConnection, name: str) -> tuple[int, int] | None:
    """Counts waiting messages and consumers; returns None if there is no such queue."""
    try:
        async with loss_is_broker_gone():
            channel = connection.channel()
            await channel.initialize()
            counts = (await channel.declare_queue(name, passive=True)).declaration_result
            await channel.close()
    except BrokerGone as error:
        if isinstance(error.__cause__, ChannelNotFoundEntity):
            return None
        raise
    return counts.message_count or 0, counts.consumer_count or 0
