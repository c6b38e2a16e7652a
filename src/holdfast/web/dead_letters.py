"""Dead letters: what was set aside until a person replays or drops it."""

from __future__ import annotations

from typing import Any

import orjson
from fastapi import APIRouter, Response

from holdfast.api import dead_letters as api
from holdfast.api.shapes import Id
from holdfast.model import LetterState
from holdfast.web.visit import Changing, Visitor
from holdfast.web.wording import pretty

router = APIRouter(prefix="/dead-letters")

_PAGE_SIZE = 100


@router.get("")
async def index(
    visit: Visitor, state: LetterState = LetterState.OPEN, after: str | None = None
) -> Response:
    found = await api.index(visit.person, visit.parts, state, _PAGE_SIZE, after)
    told = {"letters": found.dead_letters, "next": found.next, "state": state}
    return await visit.page("dead_letters.html", here="dead-letters", states=LetterState, **told)


@router.get("/{letter_id}")
async def show(letter_id: Id, visit: Visitor) -> Response:
    letter = await api.show(letter_id, visit.person, visit.parts)
    told: dict[str, Any] = {"letter": letter, "payload": _indented(letter.payload)}
    if letter.job_id and letter.seq:
        item = await visit.parts.console.items.item(letter.job_id, letter.seq)
        told["input"] = None if item is None else orjson.loads(item["input"])
    return await visit.page("dead_letter.html", here="dead-letters", **told)


@router.post("/{letter_id}/replay")
async def replay(letter_id: Id, visit: Changing) -> Response:
    await api.replay(letter_id, visit.person, visit.parts)
    return visit.go("/dead-letters", "It is tried again.")


@router.post("/{letter_id}/drop")
async def drop(letter_id: Id, visit: Changing) -> Response:
    await api.drop(letter_id, visit.person, visit.parts)
    return visit.go("/dead-letters", "Dropped. Its item stays an error; reprocess opens it again.")


def _indented(payload: str | None) -> str | None:
    """JSON as people read it; what is none, as it is."""
    try:
        return pretty(orjson.loads(payload or ""))
    except orjson.JSONDecodeError:
        return payload
