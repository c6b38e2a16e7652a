"""The exchanges and queues: declared by Holdfast, checked by `holdfast doctor`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from aio_pika import ExchangeType
from aio_pika.abc import AbstractChannel, AbstractQueue
from aio_pika.exceptions import ChannelClosed, ChannelPreconditionFailed
from aiormq.exceptions import ChannelAccessRefused, ChannelNotFoundEntity

from holdfast.errors import BrokerGone, UserError

#: Where other programs send `job.start` and `items.add`.
ORDERS_QUEUE = "orders"
DEAD_QUEUE = "dead"
FOREIGN_QUEUE = "foreign"  # stands for any queue that a consumer of an extension declares
QUEUES = (ORDERS_QUEUE, DEAD_QUEUE)
#: Each pipeline has a queue of nudges: one for each of its jobs that has work.
_WORK = "work."

#: A delivery limit of two means three deliveries.
DELIVERY_LIMIT = 2
#: Newer servers set a limit if none is given, and drop what exceeds it; dead letters must stay, and
#: a nudge comes back however many workers die.
NO_DELIVERY_LIMIT = 1_000_000

_UNEQUAL = re.compile(
    r"inequivalent arg '(?P<argument>[^']+)' for (?P<kind>queue|exchange) '(?P<name>[^']+)'"
    r".*?: received (?:the value )?(?P<wanted>'[^']*'|\S+)(?: of type '\w+')?"
    r" but current is (?:the value )?(?P<current>'[^']*'|\S+)"
)


def work_queue(pipeline: str) -> str:
    return f"{_WORK}{pipeline}"


def is_own(word: str) -> bool:
    return word in QUEUES or word.startswith(_WORK)


@dataclass(frozen=True, slots=True)
class Topology:
    """The names of our exchanges and queues, and how they are declared."""

    prefix: str

    @property
    def work_exchange(self) -> str:
        return f"{self.prefix}.work"

    @property
    def dead_exchange(self) -> str:
        return f"{self.prefix}.{DEAD_QUEUE}"

    def queue(self, word: str) -> str:
        return f"{self.prefix}.{word}"

    def arguments(self, word: str) -> dict[str, Any]:
        if word == DEAD_QUEUE or word.startswith(_WORK):
            return {"x-queue-type": "quorum", "x-delivery-limit": NO_DELIVERY_LIMIT}
        return {
            "x-queue-type": "quorum",
            "x-delivery-limit": DELIVERY_LIMIT,
            "x-dead-letter-exchange": self.dead_exchange,
            "x-dead-letter-strategy": "at-least-once",
            # Required by at-least-once; without a maximum length it limits nothing.
            "x-overflow": "reject-publish",
        }

    async def declare(self, channel: AbstractChannel) -> None:
        """Creates what is missing; raises UserError if something exists in another form."""
        for word in (DEAD_QUEUE, ORDERS_QUEUE):
            await self.declare_queue(channel, word)

    async def declare_queue(self, channel: AbstractChannel, word: str) -> AbstractQueue:
        """Declares one queue with the exchange that feeds it."""
        dead = word == DEAD_QUEUE
        kind = ExchangeType.FANOUT if dead else ExchangeType.DIRECT
        name = self.dead_exchange if dead else self.work_exchange
        try:
            exchange = await channel.declare_exchange(name, kind, durable=True)
            queue = await channel.declare_queue(
                self.queue(word), durable=True, arguments=self.arguments(word)
            )
            await queue.bind(exchange, routing_key=word)
            return queue
        except ChannelNotFoundEntity as error:
            # Somebody deleted between two of these steps what the first has created: once more.
            raise BrokerGone(" ".join(map(str, error.args))) from error
        except ChannelClosed as error:
            raise self._explained(error) from error

    async def declare_foreign(self, channel: AbstractChannel, name: str) -> AbstractQueue:
        """Declares a queue of another name, with our dead letters."""
        try:
            return await channel.declare_queue(
                name, durable=True, arguments=self.arguments(FOREIGN_QUEUE)
            )
        except ChannelClosed as error:
            raise UserError(
                f"the queue {name} cannot be declared: {error}",
                "If it belongs to another program, set declares=False in its consumer.",
            ) from error

    def _explained(self, error: ChannelClosed) -> UserError:
        text = " ".join(map(str, error.args))
        if isinstance(error, ChannelAccessRefused):
            return UserError(
                f"the broker's user is not allowed to declare or use queues and exchanges: {text}",
                f"Run: rabbitmqctl set_permissions -p VHOST USER '^{self.prefix}[.]' "
                f"'^{self.prefix}[.]' '^{self.prefix}[.]'",
            )
        if isinstance(error, ChannelPreconditionFailed):
            return self._unequal(text)
        return UserError(f"the broker refuses to declare the queues: {text}")

    def _unequal(self, text: str) -> UserError:
        match = _UNEQUAL.search(text)
        if match is None:
            return UserError(
                f"a queue or exchange of {self.prefix} exists in another form: {text}",
                f"Fix it with: holdfast broker reset {'|'.join(QUEUES)}",
            )
        argument, kind, name, wanted, current = match.groups()
        message = (
            f"the {kind} {name} exists with other arguments: {argument} is "
            f"{_plain(current)}, Holdfast needs {_plain(wanted)}"
        )
        if kind == "exchange":
            return UserError(
                message, "Delete that exchange, or choose another HOLDFAST_QUEUE_PREFIX."
            )
        return UserError(
            message,
            f"Recreate it with: holdfast broker reset {name.removeprefix(self.prefix + '.')} "
            "(or choose another HOLDFAST_QUEUE_PREFIX).",
        )


def _plain(value: str) -> str:
    return "not set" if value == "none" else value.strip("'")
