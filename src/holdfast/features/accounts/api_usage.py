"""Usage and limits of the person who sends the request."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter
from pydantic import Field

from holdfast.server.identity import PartsOf, Someone
from holdfast.server.shapes import Shape

router = APIRouter(tags=["session"])


class AmountsShape(Shape):
    files: int = Field(description="Stored files.")
    bytes: int = Field(description="Bytes of stored files and exports.")
    exports: int
    jobs: int = Field(description="Unfinished jobs.")
    items: int = Field(description="Open items of unfinished jobs.")
    tokens: int = Field(description="Valid tokens.")


class UsageShape(Shape):
    used: AmountsShape
    limits: AmountsShape


@router.get("/api/session/usage", summary="Show your usage and limits")
async def show(person: Someone, parts: PartsOf) -> UsageShape:
    quotas = parts.console.quotas
    used = AmountsShape(**asdict(await quotas.used(person.name)))
    return UsageShape(used=used, limits=AmountsShape(**asdict(quotas.limits)))
