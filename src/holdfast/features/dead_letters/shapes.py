"""Dead letters as programs and people see them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from holdfast.features.accounts.person import Person
from holdfast.model import LetterState
from holdfast.server.cursors import Cursors
from holdfast.server.dependencies import Parts
from holdfast.server.shapes import Shape


class DeadLetterShape(Shape):
    id: int
    kind: str
    job_id: int | None
    seq: int | None
    pipeline: str
    code: str
    message: str
    state: LetterState
    created_at: datetime | None
    acted_at: datetime | None
    actor: str | None


class Death(Shape):
    queue: str | None = None
    reason: str | None = None
    count: int | None = None
    deliveries: int | None = None
    at: str | None = None


class DeadLetterDetail(DeadLetterShape):
    """A dead letter; for a message also its content, and where and why it was rejected, newest
    first."""

    message_id: str | None
    queue: str | None
    payload: str | None
    history: list[Death]


class DeadLetterList(Shape):
    dead_letters: list[DeadLetterShape]
    next: str | None


async def letters_page(
    person: Person, parts: Parts, state: LetterState, size: int, after: str | None
) -> DeadLetterList:
    async def read(before: int | None, limit: int) -> list[dict[str, Any]]:
        return await parts.console.dead_letters.page(person.scope, state, limit, before)

    cursors = Cursors(parts.secret, "dead letters", person.name, {"state": state})
    letters, more = await cursors.page(after, size, read, lambda letter: letter["id"])
    return DeadLetterList(dead_letters=[DeadLetterShape(**letter) for letter in letters], next=more)


async def letter_detail(letter_id: int, person: Person, parts: Parts) -> DeadLetterDetail:
    await parts.console.dead_letters.require(letter_id, person.scope)
    return DeadLetterDetail(**await parts.console.dead_letters.letter(letter_id))
