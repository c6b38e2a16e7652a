"""Decisions as programs and people see them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from holdfast.features.rulings.rules import NewRuling as NewRuling
from holdfast.features.rulings.rules import counting
from holdfast.model import Job
from holdfast.rulings import Ruling, RulingKind
from holdfast.server.dependencies import Parts
from holdfast.server.shapes import Shape, Text


class RulingShape(Shape):
    version: int
    kind: RulingKind
    value: Any
    changes: dict[str, Any] = Field(
        description="Values of columns that take precedence in grid and export."
    )
    reason: str
    author: str
    at: datetime | None


class RulingState(Shape):
    version: int = Field(description="Send it with the next decision; 0: there was none.")
    ruling: RulingShape | None = Field(description="What counts now.")
    history: list[RulingShape] = Field(description="All decisions, the oldest first.")


class RulingBody(Shape):
    kind: Literal["choose", "edit", "reject"]
    value: Any = Field(default=None, examples=[{"price": 12}])
    reason: Text = ""
    version: int | None = Field(default=None, ge=0, le=2**31 - 1, description="As it was seen.")


async def ruling_state(job: Job, seq: int, parts: Parts) -> RulingState:
    history = await parts.console.rulings.history(job.id, seq)
    current = counting(history)
    return RulingState(
        version=history[-1].version if history else 0,
        ruling=None if current is None else _shape(current),
        history=[_shape(each) for each in history],
    )


def _shape(ruling: Ruling) -> RulingShape:
    return RulingShape.model_validate(ruling)
