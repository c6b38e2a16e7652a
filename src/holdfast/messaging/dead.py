"""Dead messages: taken from their queue, described, and handed to whoever keeps them."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from structlog.typing import FilteringBoundLogger

from holdfast.errors import BadEnvelope
from holdfast.messaging.consumer import Consumer
from holdfast.messaging.delivery import (
    CODE_HEADER,
    DELIVERIES_HEADER,
    QUEUE_HEADER,
    REASON_HEADER,
    Delivery,
)
from holdfast.messaging.envelope import parse
from holdfast.messaging.topology import DELIVERY_LIMIT, Topology

#: RabbitMQ's reason -> our code and what it means
DEATHS = {
    "delivery_limit": (
        "DELIVERY_LIMIT",
        f"it was delivered {DELIVERY_LIMIT + 1} times, and each time its consumer ended or lost "
        "the broker before it was done with",
    ),
    "rejected": ("REJECTED", "a consumer rejected it"),
    "expired": ("EXPIRED", "it waited longer than its sender allowed"),
    "maxlen": ("QUEUE_FULL", "its queue was full"),
}
UNEXPLAINED = ("UNEXPLAINED", "it was sent to the dead letters without a reason")

FIRST_DELAY_SECONDS = 0.5
LONGEST_DELAY_SECONDS = 30.0
_TEXT_CHARACTERS = 1000


@dataclass(frozen=True, slots=True)
class DeadMessage:
    """A message that was set aside. `history` tells from which queues and why, the latest first."""

    message_id: str
    type: str | None
    job_id: int | None
    code: str
    reason: str
    payload: bytes
    #: the word of the queue it came from: interactive, bulk, discover
    queue: str | None
    history: list[dict[str, Any]]


Keep = Callable[[DeadMessage], Awaitable[None]]


async def keep_dead_messages(
    consumer: Consumer,
    topology: Topology,
    keep: Keep,
    log: FilteringBoundLogger,
    chance: random.Random,
) -> None:
    """Until the consumer is stopped: `keep` commits a dead message, then it is acknowledged.

    A message may come twice; to keep it once, by its id, is the duty of `keep`.
    """
    async for delivery in consumer:
        await _keep_at_last(delivery, describe(delivery, topology), keep, log, chance)


async def _keep_at_last(
    delivery: Delivery,
    dead: DeadMessage,
    keep: Keep,
    log: FilteringBoundLogger,
    chance: random.Random,
) -> None:
    """Tries again here instead of giving it back, which RabbitMQ would do at once and for ever."""
    delay = FIRST_DELAY_SECONDS
    while not delivery.is_lost:
        try:
            await keep(dead)
        except Exception as error:
            seconds = delay * (0.5 + chance.random() / 2)
            log.error("dead.failed", message_id=dead.message_id, error=str(error), seconds=seconds)
            await asyncio.sleep(seconds)
            delay = min(delay * 2, LONGEST_DELAY_SECONDS)
        else:
            await delivery.ack()
            return


def describe(delivery: Delivery, topology: Topology) -> DeadMessage:
    """What is known of a dead message, whatever it is made of."""
    type_, job_id, message_id = _hints(delivery.body)
    deaths = _deaths(delivery.headers, topology)
    code, reason, queue = _cause(delivery, deaths)
    return DeadMessage(
        message_id=_text(delivery.message_id) or message_id or _made_up_id(delivery.body),
        type=type_,
        job_id=job_id,
        code=code,
        reason=reason,
        payload=delivery.body,
        queue=queue,
        history=deaths,
    )


def _cause(delivery: Delivery, deaths: list[dict[str, Any]]) -> tuple[str, str, str | None]:
    headers = delivery.headers
    if CODE_HEADER in headers:
        code = _text(headers[CODE_HEADER]) or UNEXPLAINED[0]
        return code, _text(headers.get(REASON_HEADER)) or code, _text(headers.get(QUEUE_HEADER))
    if not deaths:
        return (*UNEXPLAINED, None)
    latest = deaths[0]
    code, reason = DEATHS.get(latest["reason"], UNEXPLAINED)
    if latest["reason"] == "rejected":
        code, reason = _flaw(delivery.body) or (code, reason)
    return code, reason, latest["queue"]


def _flaw(payload: bytes) -> tuple[str, str] | None:
    """What is wrong with it as an envelope, if anything is."""
    try:
        parse(payload, max_bytes=len(payload))
    except BadEnvelope as error:
        return error.code, error.reason
    return None


def _deaths(headers: dict[str, Any], topology: Topology) -> list[dict[str, Any]]:
    """RabbitMQ's own account and ours, in values that JSON and every database can hold."""
    found = headers.get("x-death")
    listed = found if isinstance(found, list) else []
    told = [_death(each, topology) for each in listed if isinstance(each, dict)]
    if CODE_HEADER in headers:
        ours = {
            "queue": _text(headers.get(QUEUE_HEADER)),
            "reason": _text(headers[CODE_HEADER]),
            "count": 1,
            "deliveries": _number(headers.get(DELIVERIES_HEADER)),
            "at": None,
        }
        return [ours, *told]
    return told


def _death(entry: dict[str, Any], topology: Topology) -> dict[str, Any]:
    reason = _text(entry.get("reason"))
    at = entry.get("time")
    queue = _text(entry.get("queue"))
    return {
        "queue": queue and queue.removeprefix(f"{topology.prefix}."),
        "reason": reason,
        "count": _number(entry.get("count")),
        "deliveries": DELIVERY_LIMIT + 1 if reason == "delivery_limit" else None,
        "at": at.isoformat() if isinstance(at, datetime) else None,
    }


def _hints(payload: bytes) -> tuple[str | None, int | None, str | None]:
    """Type, job and message id, as far as the payload has them."""
    try:
        header = json.loads(payload)["header"]
        type_, job_id, message_id = (header.get(n) for n in ("type", "job_id", "message_id"))
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return None, None, None
    known = isinstance(job_id, int) and not isinstance(job_id, bool) and 0 < job_id < 2**63
    return (
        _text(type_) if isinstance(type_, str) else None,
        job_id if known else None,
        _text(message_id) if isinstance(message_id, str) else None,
    )


def _made_up_id(payload: bytes) -> str:
    """The same for the same payload, so that it is kept once."""
    return str(uuid5(NAMESPACE_URL, payload.hex()))


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _text(value: Any) -> str | None:
    """Text that every database takes: other people's has zeros and halves of surrogates in it."""
    if value is None:
        return None
    clean = str(value).encode("utf-8", "replace").decode().replace("\0", "�")
    return clean[:_TEXT_CHARACTERS] or None
