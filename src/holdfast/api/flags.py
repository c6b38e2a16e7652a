"""Feature flags: on where both the settings and the database say so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field

from holdfast.api.dependencies import Parts
from holdfast.api.identity import Admin, PartsOf, Someone
from holdfast.api.shapes import Shape

router = APIRouter(prefix="/api/flags", tags=["flags"])


class FlagShape(Shape):
    name: str
    enabled: bool
    help: str
    setting: str | None = Field(description="If this setting is off, the flag is off.")
    setting_enabled: bool
    actor: str | None
    at: datetime | None


class FlagList(Shape):
    flags: list[FlagShape]


class FlagChange(Shape):
    enabled: bool


@router.get("", summary="List the flags")
async def index(person: Someone, parts: PartsOf) -> FlagList:
    return FlagList(flags=[FlagShape.model_validate(flag) for flag in await parts.flags.all()])


@router.put("/{name}", status_code=204, summary="Switch a flag on or off")
async def change(
    name: Annotated[str, Path(max_length=100)], body: FlagChange, person: Admin, parts: PartsOf
) -> None:
    await parts.flags.change(name, body.enabled, person.name)


def require_flag(name: str) -> Callable[[Parts], Awaitable[None]]:
    """A dependency for routes that the flag can switch off."""

    async def check(parts: PartsOf) -> None:
        await parts.flags.require(name)

    return check
