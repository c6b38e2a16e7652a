"""Flags: values that an admin changes while processes run."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr

from holdfast.flags import FlagKind
from holdfast.server.identity import Admin, PartsOf, Someone
from holdfast.server.shapes import Shape

router = APIRouter(prefix="/api/flags", tags=["flags"])


class FlagShape(Shape):
    name: str
    kind: FlagKind
    value: bool | int | float | str
    default: bool | int | float | str
    choices: list[str]
    minimum: int | None
    maximum: int | None
    help: str
    setting: str | None = Field(description="If this setting is off, the flag is off.")
    setting_enabled: bool
    actor: str | None
    at: datetime | None


class FlagList(Shape):
    flags: list[FlagShape]


class FlagChange(Shape):
    value: StrictBool | StrictInt | StrictFloat | Annotated[StrictStr, Field(max_length=200)]


@router.get("", summary="List the flags")
async def index(person: Someone, parts: PartsOf) -> FlagList:
    return FlagList(flags=[FlagShape.model_validate(flag) for flag in await parts.flags.all()])


@router.put("/{name}", status_code=204, summary="Set a flag")
async def change(
    name: Annotated[str, Path(max_length=100)], body: FlagChange, person: Admin, parts: PartsOf
) -> None:
    await parts.flags.change(name, body.value, person.name)
