"""Gates: shared rate limits, and until when a gate is closed."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field

from holdfast.features.gates.shapes import GateShape, all_gates
from holdfast.server.identity import Admin, PartsOf, Someone
from holdfast.server.shapes import Shape, Text

router = APIRouter(prefix="/api/gates", tags=["gates"])

GateName = Annotated[str, Path(max_length=300, pattern=r"^[^\x00]+$", examples=["shop.example"])]


class GateList(Shape):
    gates: list[GateShape]


class Closing(Shape):
    seconds: float = Field(gt=0, le=86_400 * 30)
    reason: Text = ""


@router.get("", summary="List the gates")
async def index(person: Someone, parts: PartsOf) -> GateList:
    return GateList(gates=await all_gates(parts))


@router.post("/{name:path}/close", status_code=204, summary="Close a gate for a while")
async def close(name: GateName, body: Closing, person: Admin, parts: PartsOf) -> None:
    """Items that need it wait until then and let others run."""
    await parts.store.gates.order(name, body.seconds, body.reason, person.name)


@router.post("/{name:path}/open", status_code=204, summary="Open a closed gate")
async def open_gate(name: GateName, person: Admin, parts: PartsOf) -> None:
    await parts.store.gates.order(name, 0.0, "", person.name)
