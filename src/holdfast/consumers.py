"""Other programs' queues that an extension reads: what a message is, and what becomes of it.

async def prices(tx, message):
    return [Record(row) for row in message.json()["rows"]]

CONSUMERS = [
    QueueConsumer("weather.readings", prices, [Binding("stations", "readings.#", "topic")])
]
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import orjson

from holdfast.clock import Clock
from holdfast.errors import PipelineError
from holdfast.flags import FlagValue
from holdfast.model import Record
from holdfast.pipeline import Pipeline, Tx


class BadMessage(Exception):
    """Raised for a message that no further attempt can process: it becomes a dead letter at
    once."""

    def __init__(self, reason: str, code: str = "BAD_MESSAGE") -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message of a queue.

    Without a `message_id` from its sender, it is unknown whether it came before."""

    queue: str
    body: bytes
    headers: Mapping[str, Any]
    message_id: str | None
    redelivered: bool = False
    prepared: Any = None  # what the consumer's `prepare` returned

    def json(self) -> Any:
        try:
            return orjson.loads(self.body)
        except ValueError as error:
            raise BadMessage(f"it is not JSON: {error}", "NOT_JSON") from error


@dataclass(frozen=True, slots=True)
class Topic:
    """Records for one of the standing jobs of a pipeline, which is created when the first ones
    come: by its name, if a pipeline has several, and of an owner, if not the consumer's. Check with
    `ConsumerTools.trust` that the sender may name one."""

    name: str
    records: Sequence[Record]
    owner: str | None = None


#: Runs in the transaction that remembers the message: may write the extension's own tables, and
#: returns the records that it contains, if any.
Take = Callable[[Tx, Incoming], Awaitable[Sequence[Record] | Topic | None]]

#: Runs before that transaction: reads what the message refers to. While the file store cannot be
#: reached, the message waits.
Prepare = Callable[[Incoming], Awaitable[Any]]


class Trust(Protocol):
    """Decides whether a message may act for the owner that it names: only if it is signed."""

    def __call__(
        self,
        message: Incoming,
        signature: str | None,
        owner: str | None,
        created_at: datetime | None,
    ) -> None:
        """Raises BadMessage if not, also for a wrong signature and an outdated message."""


def trust_nobody(
    message: Incoming, signature: str | None, owner: str | None, created_at: datetime | None
) -> None:
    """Trusts no message: for a process without a key."""
    if signature is not None or owner is not None:
        raise BadMessage("no key is set that could have signed it", "NOT_ALLOWED")


@dataclass(frozen=True, slots=True)
class ConsumerTools:
    """What the consumers of an extension can use.

    If the part named by `consumers` is a function, it is called with this and returns the
    consumers."""

    pipeline: Pipeline  # has the options and metrics of the extension
    flag: Callable[[str], Awaitable[FlagValue]]
    #: Reads the content of a file in a bucket of the service that the S3 settings name.
    fetch: Callable[[str, str], AsyncIterator[bytes]]
    clock: Clock
    log: Any
    owner: str = ""  # the owner whose workers run
    trust: Trust = trust_nobody


@dataclass(frozen=True, slots=True)
class Binding:
    """Where a queue gets its messages.

    With `kind` (topic, direct, fanout), the exchange is declared; without, it has to exist."""

    exchange: str
    routing_key: str = "#"
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class QueueConsumer:
    """Reads a queue. Its records are added to the standing job of `pipeline` (the extension's own
    if not given) and `owner` (whose workers run if not given).

    The queue is declared, durable and with dead letters, unless `declares` is false: then it is
    used as it is. At most `prefetch` messages are taken at once by each of `consumers`
    consumers.
    """

    queue: str
    take: Take
    bindings: Sequence[Binding] = ()
    prefetch: int = 10
    pipeline: str | None = None
    owner: str | None = None
    declares: bool = True
    prepare: Prepare | None = None
    consumers: int = 1

    def __post_init__(self) -> None:
        if not self.queue or self.prefetch < 1 or self.consumers < 1:
            raise PipelineError(
                f"a consumer cannot read the queue {self.queue!r} with prefetch {self.prefetch} "
                f"and {self.consumers} consumers",
                "Give the name of a queue, and a prefetch and consumers of at least 1.",
            )
