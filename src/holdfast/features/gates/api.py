"""Gates: shared rate limits, and until when a gate is closed."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field

from holdfast.server.identity import Admin, PartsOf, Someone
from holdfast.server.shapes import Shape, Text

router = APIRouter(prefix="/api/gates", tags=["gates"])

GateName = Annotated[str, Path(max_length=300, pattern=r"^[^\x00]+$", examples=["shop.example"])]


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


class GateList(Shape):
    gates: list[GateShape]


class Closing(Shape):
    seconds: float = Field(gt=0, le=86_400 * 30)
    reason: Text = ""


@router.get("", summary="List the gates")
async def index(person: Someone, parts: PartsOf) -> GateList:
    gates = await parts.store.gates.all()
    return GateList(gates=[GateShape(**gate | {"closed": bool(gate["closed"])}) for gate in gates])


@router.post("/{name}/close", status_code=204, summary="Close a gate for a while")
async def close(name: GateName, body: Closing, person: Admin, parts: PartsOf) -> None:
    """Items that need it wait until then and let others run."""
    await parts.store.gates.order(name, body.seconds, body.reason, person.name)


@router.post("/{name}/open", status_code=204, summary="Open a closed gate")
async def open_gate(name: GateName, person: Admin, parts: PartsOf) -> None:
    await parts.store.gates.order(name, 0.0, "", person.name)
