"""Exports as programs and people see them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from holdfast.features.accounts.person import Person
from holdfast.features.exports.exports import Export
from holdfast.server.cursors import Cursors
from holdfast.server.dependencies import Parts
from holdfast.server.shapes import Shape

Format = Literal["csv", "xlsx", "jsonl", "json"]


class ExportShape(Shape):
    id: int
    owner_id: str
    job_id: int
    format: Format
    statuses: list[str]
    narrowed: dict[str, Any] = Field(description="The code, times and values of the filter.")
    with_input: bool
    state: Literal["QUEUED", "RUNNING", "DONE", "FAILED"]
    partial: bool = Field(description="The job was still running when it was written.")
    rows_count: int
    size: int | None
    notes: list[str] = Field(description="What the format could not represent, in sentences.")
    error: str | None
    created_at: datetime | None
    finished_at: datetime | None
    download: str | None = Field(examples=["/api/exports/7/download"])


class ExportList(Shape):
    exports: list[ExportShape]
    next: str | None


def export_shape(export: Export) -> ExportShape:
    names = [name for name in ExportShape.model_fields if name != "download"]
    fields = {name: getattr(export, name) for name in names}
    done = export.state == "DONE"
    fields["download"] = f"/api/exports/{export.id}/download" if done else None
    return ExportShape(**fields)


async def exports_page(person: Person, parts: Parts, size: int, after: str | None) -> ExportList:
    async def read(before: int | None, limit: int) -> list[Export]:
        return await parts.console.exports.page(person.own_scope, limit, before)

    cursors = Cursors(parts.secret, "exports", person.name, {})
    exports, more = await cursors.page(after, size, read, lambda export: export.id)
    return ExportList(exports=[export_shape(export) for export in exports], next=more)
