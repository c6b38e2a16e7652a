"""Dead letters: items and messages set aside until a person replays or drops them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query

from holdfast.model import LetterState
from holdfast.server.cursors import Cursors
from holdfast.server.idempotency import IdempotentRoute
from holdfast.server.identity import Operator, PartsOf, Someone
from holdfast.server.shapes import Id, Shape

router = APIRouter(prefix="/api/dead-letters", tags=["dead letters"], route_class=IdempotentRoute)


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


@router.get("", summary="List the dead letters")
async def index(
    person: Someone,
    parts: PartsOf,
    state: LetterState = LetterState.OPEN,
    page_size: Annotated[int, Query(alias="pageSize", ge=1, le=200)] = 100,
    after: str | None = None,
) -> DeadLetterList:
    cursors = Cursors(parts.secret, "dead letters", person.name, {"state": state})
    letters: list[dict[str, Any]] = await parts.console.dead_letters.page(
        person.scope, state, page_size + 1, cursors.read(after)
    )
    more = cursors.write(letters[page_size - 1]["id"]) if len(letters) > page_size else None
    shapes = [DeadLetterShape(**letter) for letter in letters[:page_size]]
    return DeadLetterList(dead_letters=shapes, next=more)


@router.get("/{letter_id}", summary="Show a dead letter")
async def show(letter_id: Id, person: Someone, parts: PartsOf) -> DeadLetterDetail:
    """A payload that is not text is given in base64, after `base64:`."""
    await parts.console.dead_letters.require(letter_id, person.scope)
    return DeadLetterDetail(**await parts.console.dead_letters.letter(letter_id))


@router.post("/{letter_id}/replay", status_code=204, summary="Replay a dead letter")
async def replay(letter_id: Id, person: Operator, parts: PartsOf) -> None:
    await parts.console.dead_letters.require(letter_id, person.scope)
    await parts.store.jobs.act_on_dead_letter(letter_id, True, person.name)


@router.post("/{letter_id}/drop", status_code=204, summary="Drop a dead letter")
async def drop(letter_id: Id, person: Operator, parts: PartsOf) -> None:
    """Its item remains an error."""
    await parts.console.dead_letters.require(letter_id, person.scope)
    await parts.store.jobs.act_on_dead_letter(letter_id, False, person.name)
