"""Operations as programs and people see them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from holdfast.features.accounts.person import Person
from holdfast.features.bulk.operations import Operation
from holdfast.server.cursors import Cursors
from holdfast.server.dependencies import Parts
from holdfast.server.shapes import Shape


class OperationShape(Shape):
    id: int
    owner_id: str
    kind: str
    target: dict[str, Any]
    job_ids: list[int]
    state: Literal["QUEUED", "RUNNING", "DONE", "FAILED", "CANCELLED"]
    expected_count: int
    done_count: int
    left_count: int = Field(
        description="Items left unchanged: permanent errors, or no attempts left."
    )
    result: list[int] = Field(description="Ids of the exports it created.")
    error: str | None
    created_at: datetime | None
    finished_at: datetime | None


class OperationList(Shape):
    operations: list[OperationShape]
    next: str | None


def operation_shape(operation: Operation) -> OperationShape:
    fields = {name: getattr(operation, name) for name in OperationShape.model_fields}
    return OperationShape(**fields | {"target": dict(operation.target)})


async def operations_page(
    person: Person, parts: Parts, size: int, after: str | None
) -> OperationList:
    async def read(before: int | None, limit: int) -> list[Operation]:
        return await parts.console.operations.page(person.scope, limit, before)

    cursors = Cursors(parts.secret, "operations", person.name, {})
    operations, more = await cursors.page(after, size, read, lambda operation: operation.id)
    shapes = [operation_shape(operation) for operation in operations]
    return OperationList(operations=shapes, next=more)
