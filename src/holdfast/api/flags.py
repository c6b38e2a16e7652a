"""Feature flags: on where both the settings and the database say so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field

from holdfast.api.identity import Admin, PartsOf, Someone
from holdfast.api.parts import Parts
from holdfast.api.problems import SwitchedOff
from holdfast.api.shapes import Shape
from holdfast.errors import NotThere
from holdfast.extension import FlagSpec

router = APIRouter(prefix="/api/flags", tags=["flags"])


class Flag(StrEnum):
    """The flags of the core; extensions add theirs."""

    INGEST = "ingest"
    PENDING = "pending"


FLAGS = (
    FlagSpec(Flag.INGEST, "Uploads and new jobs over files.", "db_ingest_enabled"),
    FlagSpec(Flag.PENDING, "The list of everything pending, over all jobs.", "pending_enabled"),
)


class FlagShape(Shape):
    name: str
    enabled: bool
    help: str
    setting: str | None = Field(description="Off here is off, whatever the flag says.")
    setting_enabled: bool
    actor: str | None
    at: datetime | None


class FlagList(Shape):
    flags: list[FlagShape]


class FlagChange(Shape):
    enabled: bool


@router.get("", summary="List the flags")
async def index(person: Someone, parts: PartsOf) -> FlagList:
    found = await parts.console.flags.all()
    flags = []
    for flag in parts.options.flags.values():
        stored = found.get(flag.name, {"enabled": True, "actor": None, "at": None})
        flags.append(
            FlagShape(
                name=flag.name,
                enabled=flag.allowed and stored["enabled"],
                help=flag.help,
                setting=flag.setting,
                setting_enabled=flag.allowed,
                actor=stored["actor"],
                at=stored["at"],
            )
        )
    return FlagList(flags=flags)


@router.put("/{name}", status_code=204, summary="Switch a flag")
async def change(
    name: Annotated[str, Path(max_length=100)], body: FlagChange, person: Admin, parts: PartsOf
) -> None:
    if name not in parts.options.flags:
        known = ", ".join(parts.options.flags)
        raise NotThere(f"there is no flag {name!r}", f"Flags: {known}.")
    await parts.console.flags.set_flag(name, body.enabled, person.name)


async def is_on(parts: Parts, flag: str) -> bool:
    if not parts.options.flags[flag].allowed:
        return False
    stored = (await parts.console.flags.all()).get(flag)
    return stored is None or bool(stored["enabled"])


def require_flag(name: str) -> Callable[[Parts], Awaitable[None]]:
    """For routes that the flag can switch off."""

    async def check(parts: PartsOf) -> None:
        if not await is_on(parts, name):
            flag = parts.options.flags[name]
            hint = f"An admin switches it on: PUT /api/flags/{name}"
            raise SwitchedOff(
                f"switched off: {flag.help[0].lower()}{flag.help[1:]}",
                f"{hint}, or {flag.setting}=true." if flag.setting else f"{hint}.",
            )

    return check
