"""Gates: shared limits, and which are closed until when."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from holdfast.api import gates as api
from holdfast.web.forms import whole_number
from holdfast.web.visit import Governing, Visitor, fields

router = APIRouter(prefix="/gates")

_LONGEST_MINUTES = 30 * 24 * 60
_NO_MINUTES = 15  # where none are said


@router.get("")
async def index(visit: Visitor) -> Response:
    found = await api.index(visit.person, visit.parts)
    gates = sorted(found.gates, key=lambda gate: (not gate.closed, gate.name))
    return await visit.page("gates.html", here="gates", gates=gates)


@router.get("/close")
async def ask_close(visit: Visitor, name: Annotated[str, Query(max_length=300)]) -> Response:
    if visit.is_partial:
        return visit.part("ask/gate.html", name=name)
    told = {"title": "Gates", "question": "ask/gate.html", "name": name}
    return await visit.page("ask.html", here="gates", **told)


@router.post("/close")
async def close(visit: Governing) -> Response:
    form = await fields(visit.request)
    name, reason = form.get("name", ""), form.get("reason", "")[:1000]
    minutes = whole_number(form.get("minutes"), _LONGEST_MINUTES) or _NO_MINUTES
    closing = api.Closing(seconds=60.0 * minutes, reason=reason)
    await api.close(name, closing, visit.person, visit.parts)
    return visit.go("/gates", f"{name} is closed: items that need it give way.")


@router.post("/open")
async def open_gate(visit: Governing) -> Response:
    name = (await fields(visit.request)).get("name", "")
    await api.open_gate(name, visit.person, visit.parts)
    return visit.go("/gates", f"{name} is open again.")
