"""Schedules as programs and people see them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import orjson
from pydantic import Field

from holdfast.server.shapes import Shape


class ScheduleShape(Shape):
    name: str
    pipeline: str
    cron: str = Field(examples=["0 6 * * *"])
    zone: str
    options: dict[str, Any]
    enabled: bool
    next_at: datetime | None
    last_at: datetime | None
    last_job_id: int | None
    error: str | None


def schedule_shape(row: dict[str, Any]) -> ScheduleShape:
    fields = {name: value for name, value in row.items() if name != "reference"}
    fields |= {
        "pipeline": row["reference"],
        "options": orjson.loads(row["options"]),
        "enabled": bool(row["enabled"]),
    }
    return ScheduleShape(**fields)
