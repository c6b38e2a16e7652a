"""The page of gates, on which an admin closes and opens them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from holdfast.features.gates.shapes import all_gates
from holdfast.server.context import Visitor
from holdfast.server.forms import AdminPost, fields, reason_in, whole_number

router = APIRouter(prefix="/gates")

_LONGEST_MINUTES = 30 * 24 * 60
_DEFAULT_MINUTES = 15


@router.get("")
async def index(visit: Visitor) -> Response:
    gates = sorted(await all_gates(visit.parts), key=lambda gate: (not gate.closed, gate.name))
    return await visit.page("gates.html", here="gates", gates=gates)


@router.get("/close")
async def close_dialog(visit: Visitor, name: Annotated[str, Query(max_length=300)]) -> Response:
    return await visit.dialog("dialogs/gate.html", here="gates", title="Gates", name=name)


@router.post("/close")
async def close(visit: AdminPost) -> Response:
    form = await fields(visit.request)
    name = form.get("name", "")
    minutes = whole_number(form.get("minutes"), _LONGEST_MINUTES) or _DEFAULT_MINUTES
    gates, seconds = visit.parts.store.gates, 60.0 * minutes
    await gates.order(name, seconds, reason_in(form), visit.person.name)
    return visit.go("/gates", f"{name} is closed; items that need it wait.")


@router.post("/open")
async def open_gate(visit: AdminPost) -> Response:
    name = (await fields(visit.request)).get("name", "")
    await visit.parts.store.gates.order(name, 0.0, "", visit.person.name)
    return visit.go("/gates", f"{name} is open again.")
