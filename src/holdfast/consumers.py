"""Queues of others that an extension reads: what a message is, and what becomes of it.

async def prices(tx, message):
    return [Record(row) for row in message.json()["rows"]]

CONSUMERS = [
    QueueConsumer("weather.readings", prices, [Binding("stations", "readings.#", "topic")])
]
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from holdfast.errors import PipelineError
from holdfast.model import Record
from holdfast.pipeline import Tx


class BadMessage(Exception):
    """Raised for a message that no attempt will make good: it becomes a dead letter at once."""

    def __init__(self, reason: str, code: str = "BAD_MESSAGE") -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message of a queue. Without a `message_id` of its sender, it is not known whether it came
    before."""

    queue: str
    body: bytes
    headers: Mapping[str, Any]
    message_id: str | None
    redelivered: bool = False

    def json(self) -> Any:
        try:
            return orjson.loads(self.body)
        except ValueError as error:
            raise BadMessage(f"it is not JSON: {error}", "NOT_JSON") from error


#: In the transaction that remembers the message: may write the extension's own tables, and returns
#: the records that it contains, if any.
Take = Callable[[Tx, Incoming], Awaitable[Sequence[Record] | None]]


@dataclass(frozen=True, slots=True)
class Binding:
    """Where a queue gets its messages. With `kind` (topic, direct, fanout), the exchange is
    declared; without, it has to exist."""

    exchange: str
    routing_key: str = "#"
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class QueueConsumer:
    """Reads a queue. Its records are added to the standing job of `pipeline` (the extension's own
    if not given) and `owner` (whose workers run if not given).

    The queue is declared, durable and with dead letters, unless `declares` is false: then it is
    used as it is. At most `prefetch` messages are taken at once.
    """

    queue: str
    take: Take
    bindings: Sequence[Binding] = ()
    prefetch: int = 10
    pipeline: str | None = None
    owner: str | None = None
    declares: bool = True

    def __post_init__(self) -> None:
        if not self.queue or self.prefetch < 1:
            raise PipelineError(
                f"a consumer cannot read the queue {self.queue!r} with prefetch {self.prefetch}",
                "Give the name of a queue, and a prefetch of at least 1.",
            )
