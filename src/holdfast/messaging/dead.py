"""Dead messages: taken from their queue, described, and stored."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from structlog.typing import FilteringBoundLogger

from holdfast.errors import BadEnvelope
from holdfast.kernel import DeadMessage
from holdfast.kernel.worker.patience import backoff
from holdfast.messaging.consumer import Consumer
from holdfast.messaging.delivery import (
    CODE_HEADER,
    DELIVERIES_HEADER,
    QUEUE_HEADER,
    REASON_HEADER,
    Delivery,
)
from holdfast.messaging.envelope import parse
from holdfast.messaging.topology import DELIVERY_LIMIT, ORDERS_QUEUE, Topology
from holdfast_client.storable import storable_text

#: RabbitMQ's reason -> our code and what it means
DEATHS = {
    "delivery_limit": (
        "DELIVERY_LIMIT",
        f"it was delivered {DELIVERY_LIMIT + 1} times, and each time its consumer ended or lost "
        "the broker before it was finished",
    ),
    "rejected": ("REJECTED", "a consumer rejected it"),
    "expired": ("EXPIRED", "it waited longer than its sender allowed"),
    "maxlen": ("QUEUE_FULL", "its queue was full"),
}
UNEXPLAINED = ("UNEXPLAINED", "it was sent to the dead letters without a reason")

FIRST_DELAY_SECONDS = 0.5
LONGEST_DELAY_SECONDS = 30.0
_TEXT_CHARACTERS = 1000
_DEFAULT_QUEUE = ORDERS_QUEUE  # where a replay goes if its origin is unknown


#: Commits a dead message; the same one may come twice.
Keep = Callable[[DeadMessage], Awaitable[None]]


async def keep_dead_messages(
    consumer: Consumer,
    topology: Topology,
    keep: Keep,
    log: FilteringBoundLogger,
    rng: random.Random,
) -> None:
    """Stores dead messages until the consumer is stopped: `keep` commits each one, then it is
    acknowledged."""
    async for delivery in consumer:
        await _insist(delivery, describe(delivery, topology), keep, log, rng)


async def _insist(
    delivery: Delivery,
    dead: DeadMessage,
    keep: Keep,
    log: FilteringBoundLogger,
    rng: random.Random,
) -> None:
    """Tries again here instead of giving the message back: RabbitMQ would deliver it again at once,
    without end."""
    for seconds in backoff(rng, FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS):
        if delivery.is_lost:
            return
        try:
            await keep(dead)
        except Exception as error:
            log.error("dead.failed", message_id=dead.message_id, error=str(error), seconds=seconds)
            await asyncio.sleep(seconds)
        else:
            await delivery.ack()
            return


def describe(delivery: Delivery, topology: Topology) -> DeadMessage:
    """Describes what is known about a dead message, whatever it contains."""
    job_id, message_id = _hints(delivery.body)
    deaths = _deaths(delivery.headers, topology)
    code, reason, queue = _cause(delivery, deaths)
    return DeadMessage(
        message_id=_text(delivery.message_id) or message_id or _derived_id(delivery.body),
        job_id=job_id,
        code=code,
        reason=reason,
        payload=delivery.body,
        queue=queue or _DEFAULT_QUEUE,
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
    """Returns what is wrong with it as an envelope, if anything."""
    try:
        parse(payload, max_bytes=len(payload))
    except BadEnvelope as error:
        return error.code, error.reason
    return None


def _deaths(headers: dict[str, Any], topology: Topology) -> list[dict[str, Any]]:
    """Returns RabbitMQ's own account and ours, in values that JSON and every database can hold."""
    entries = headers.get("x-death")
    listed = entries if isinstance(entries, list) else []
    theirs = [_death(entry, topology) for entry in listed if isinstance(entry, dict)]
    if CODE_HEADER in headers:
        ours = {
            "queue": _text(headers.get(QUEUE_HEADER)),
            "reason": _text(headers[CODE_HEADER]),
            "count": 1,
            "deliveries": _number(headers.get(DELIVERIES_HEADER)),
            "at": None,
        }
        return [ours, *theirs]
    return theirs


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


def _hints(payload: bytes) -> tuple[int | None, str | None]:
    """Returns job and message id, if the payload has them."""
    try:
        header = json.loads(payload)["header"]
        job_id, message_id = header.get("job_id"), header.get("message_id")
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return None, None
    known = isinstance(job_id, int) and not isinstance(job_id, bool) and 0 < job_id < 2**63
    return (
        job_id if known else None,
        _text(message_id) if isinstance(message_id, str) else None,
    )


def _derived_id(payload: bytes) -> str:
    """Derives an id that is the same for the same payload, so that it is stored once."""
    return str(uuid5(NAMESPACE_URL, payload.hex()))


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _text(value: Any) -> str | None:
    return None if value is None else storable_text(str(value), _TEXT_CHARACTERS) or None
