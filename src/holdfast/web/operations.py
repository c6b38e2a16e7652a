"""Operations on everything that matched a filter: how far they are, and how to stop them."""

from __future__ import annotations

from fastapi import APIRouter, Response

from holdfast.api import operations as api
from holdfast.api.shapes import Id
from holdfast.web.visit import Changing, Visitor

router = APIRouter(prefix="/operations")


@router.get("")
async def index(visit: Visitor, after: str | None = None) -> Response:
    found = await api.index(visit.person, visit.parts, 50, after)
    told = {"operations": found.operations, "next": found.next}
    return await visit.page("operations.html", here="jobs", **told)


@router.get("/{operation_id}")
async def show(operation_id: Id, visit: Visitor) -> Response:
    """Asked again by the page itself until it has ended."""
    found = await api.show(operation_id, visit.person, visit.parts)
    if visit.is_partial:
        return visit.part("parts/operation.html", operation=found)
    return await visit.page("operation.html", here="jobs", operation=found)


@router.post("/{operation_id}/cancel")
async def cancel(operation_id: Id, visit: Changing) -> Response:
    await api.cancel(operation_id, visit.person, visit.parts)
    return visit.go(f"/operations/{operation_id}", "Stopped. What it did stays done.")
