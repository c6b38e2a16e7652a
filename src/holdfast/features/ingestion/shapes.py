"""Adapters and the files that arrived, as programs and people see them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from holdfast.features.accounts.person import Person
from holdfast.features.ingestion.adapters import Adapter, AdapterKind, FileState
from holdfast.server.dependencies import Parts
from holdfast.server.shapes import Shape


class AdapterShape(Shape):
    name: str
    kind: AdapterKind
    address: str
    pipeline: str
    owner: str
    options: dict[str, Any]
    marker: str
    settle_seconds: float
    interval_seconds: float
    scanned_at: datetime | None
    error: str | None = Field(description="Why the last scan failed.")
    scanning: bool


class ArrivedFile(Shape):
    name: str
    size: int
    state: FileState
    job_id: int | None
    error: str | None
    seen_at: datetime | None
    updated_at: datetime | None


def adapter_shape(adapter: Adapter) -> AdapterShape:
    return AdapterShape.model_validate(adapter)


async def arrived_files(name: str, person: Person, parts: Parts, limit: int) -> list[ArrivedFile]:
    """Lists the files that arrived at an adapter that the person may see, the newest first."""
    adapter = await parts.console.adapters.named(name, person.scope)
    rows = await parts.console.adapters.files(adapter, limit)
    return [ArrivedFile.model_validate(row) for row in rows]
