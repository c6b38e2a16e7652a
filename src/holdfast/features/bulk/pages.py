"""Operations on everything that matched a filter: their progress, and how to stop them."""

from __future__ import annotations

from fastapi import APIRouter, Response

from holdfast.features.bulk.shapes import operation_shape, operations_page
from holdfast.server.context import Visitor
from holdfast.server.forms import OperatorPost
from holdfast.server.shapes import Id

router = APIRouter(prefix="/operations")

_PAGE_SIZE = 50


@router.get("")
async def index(visit: Visitor, after: str | None = None) -> Response:
    page = await operations_page(visit.person, visit.parts, _PAGE_SIZE, after)
    return await visit.page(
        "operations.html", here="jobs", operations=page.operations, next=page.next
    )


@router.get("/{operation_id}")
async def show(operation_id: Id, visit: Visitor) -> Response:
    """Shows the operation; the page polls this until it has ended."""
    operations = visit.parts.console.operations
    operation = operation_shape(await operations.operation(operation_id, visit.person.scope))
    if visit.is_partial:
        return visit.part("parts/operation.html", operation=operation)
    return await visit.page("operation.html", here="jobs", operation=operation)


@router.post("/{operation_id}/cancel")
async def cancel(operation_id: Id, visit: OperatorPost) -> Response:
    await visit.parts.bulk.cancel(operation_id, visit.person)
    return visit.go(
        f"/operations/{operation_id}", "Operation stopped. Items it already changed stay changed."
    )
