"""Dead letters: items and messages set aside until a person replays or drops them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from holdfast.features.dead_letters.rules import replay_or_drop
from holdfast.features.dead_letters.shapes import (
    DeadLetterDetail,
    DeadLetterList,
    letter_detail,
    letters_page,
)
from holdfast.model import LetterState
from holdfast.server.idempotency import IdempotentRoute
from holdfast.server.identity import Operator, PartsOf, Someone
from holdfast.server.shapes import Id

router = APIRouter(prefix="/api/dead-letters", tags=["dead letters"], route_class=IdempotentRoute)


@router.get("", summary="List the dead letters")
async def index(
    person: Someone,
    parts: PartsOf,
    state: LetterState = LetterState.OPEN,
    page_size: Annotated[int, Query(alias="pageSize", ge=1, le=200)] = 100,
    after: str | None = None,
) -> DeadLetterList:
    return await letters_page(person, parts, state, page_size, after)


@router.get("/{letter_id}", summary="Show a dead letter")
async def show(letter_id: Id, person: Someone, parts: PartsOf) -> DeadLetterDetail:
    """A payload that is not text is given in base64, after `base64:`."""
    return await letter_detail(letter_id, person, parts)


@router.post("/{letter_id}/replay", status_code=204, summary="Replay a dead letter")
async def replay(letter_id: Id, person: Operator, parts: PartsOf) -> None:
    await replay_or_drop(parts.console, letter_id, person, replay=True)


@router.post("/{letter_id}/drop", status_code=204, summary="Drop a dead letter")
async def drop(letter_id: Id, person: Operator, parts: PartsOf) -> None:
    """Its item remains an error."""
    await replay_or_drop(parts.console, letter_id, person, replay=False)
