"""The pages of dead letters: the list, and one of them with what a person may do."""

from __future__ import annotations

from typing import Any

import orjson
from fastapi import APIRouter, Response

from holdfast.features.dead_letters.rules import replay_or_drop
from holdfast.features.dead_letters.shapes import letter_detail, letters_page
from holdfast.model import LetterState
from holdfast.server.context import Visitor
from holdfast.server.formatting import parsed, pretty
from holdfast.server.forms import OperatorPost
from holdfast.server.shapes import Id

router = APIRouter(prefix="/dead-letters")

_PAGE_SIZE = 100


@router.get("")
async def index(
    visit: Visitor, state: LetterState = LetterState.OPEN, after: str | None = None
) -> Response:
    page = await letters_page(visit.person, visit.parts, state, _PAGE_SIZE, after)
    context = {"letters": page.dead_letters, "next": page.next, "state": state}
    return await visit.page("dead_letters.html", here="dead-letters", states=LetterState, **context)


@router.get("/{letter_id}")
async def show(letter_id: Id, visit: Visitor) -> Response:
    letter = await letter_detail(letter_id, visit.person, visit.parts)
    context: dict[str, Any] = {"letter": letter, "payload": _indented(letter.payload)}
    if letter.job_id and letter.seq:
        item = await visit.parts.console.items.item(letter.job_id, letter.seq)
        context["input"] = None if item is None else parsed(item["input"])
    return await visit.page("dead_letter.html", here="dead-letters", **context)


@router.post("/{letter_id}/replay")
async def replay(letter_id: Id, visit: OperatorPost) -> Response:
    await replay_or_drop(visit.parts.console, letter_id, visit.person, replay=True)
    return visit.go("/dead-letters", "Dead letter replayed.")


@router.post("/{letter_id}/drop")
async def drop(letter_id: Id, visit: OperatorPost) -> Response:
    await replay_or_drop(visit.parts.console, letter_id, visit.person, replay=False)
    return visit.go(
        "/dead-letters", "Dead letter dropped. Its item remains an error; it can be reprocessed."
    )


def _indented(payload: str | None) -> str | None:
    """Indents JSON; anything else is shown as it is."""
    try:
        return pretty(orjson.loads(payload or ""))
    except orjson.JSONDecodeError:
        return payload
