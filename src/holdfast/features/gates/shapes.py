"""Gates as programs and people see them."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from holdfast.server.dependencies import Parts
from holdfast.server.shapes import Shape


class GateShape(Shape):
    name: str
    spacing: float = Field(description="Minimum seconds between two starts.")
    jitter: float
    concurrency: int = Field(description="Maximum number in flight; 0 means no limit.")
    requests: int = Field(description="Budget: requests in a period; 0 means no limit.")
    units: float = Field(description="Budget: units in a period; 0 means no limit.")
    period: float = Field(description="Seconds of the budget's period.")
    share: float = Field(description="Part of the budget that is used now; throttles lower it.")
    requests_now: float | None = Field(description="The budget of requests with that share.")
    units_now: float | None
    throttled_at: datetime | None
    held: int | None = Field(description="Places that workers hold now.")
    most: int | None = Field(
        description="Requests that workers may have in flight now, by what they measured."
    )
    passed: int = Field(description="Requests in the last five minutes; the same for the rest.")
    passed_units: float
    waits: int = Field(description="Requests that waited at least 0.1 s for the gate.")
    wait_seconds: float
    throttles: int
    failures: int
    closed: bool
    closed_until: datetime | None
    reason: str | None
    next_at: datetime | None


async def all_gates(parts: Parts) -> list[GateShape]:
    gates = await parts.store.gates.all()
    return [GateShape(**gate | {"closed": bool(gate["closed"])}) for gate in gates]
