"""Dead letters: what was set aside until a person replays or drops it."""

from __future__ import annotations

from fastapi import APIRouter, Response

from holdfast.api import dead_letters as api
from holdfast.api.shapes import Id
from holdfast.model import LetterState
from holdfast.web.visit import Changing, Visitor

router = APIRouter(prefix="/dead-letters")

_PAGE_SIZE = 100


@router.get("")
async def index(
    visit: Visitor, state: LetterState = LetterState.OPEN, after: str | None = None
) -> Response:
    found = await api.index(visit.person, visit.parts, state, _PAGE_SIZE, after)
    told = {"letters": found.dead_letters, "next": found.next, "state": state}
    return await visit.page("dead_letters.html", here="dead-letters", states=LetterState, **told)


@router.post("/{letter_id}/replay")
async def replay(letter_id: Id, visit: Changing) -> Response:
    await api.replay(letter_id, visit.person, visit.parts)
    return visit.go("/dead-letters", "It is tried again.")


@router.post("/{letter_id}/drop")
async def drop(letter_id: Id, visit: Changing) -> Response:
    await api.drop(letter_id, visit.person, visit.parts)
    return visit.go("/dead-letters", "Dropped. Its item stays an error; reprocess opens it again.")
