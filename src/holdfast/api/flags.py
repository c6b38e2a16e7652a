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

router = APIRouter(prefix="/api/flags", tags=["flags"])


class Flag(StrEnum):
    INGEST = "ingest"
    PENDING = "pending"


#: flag -> (what it lets people do, the setting that may switch it off)
FLAGS = {
    Flag.INGEST: ("Uploads and new jobs over files.", "DB_INGEST_ENABLED"),
    Flag.PENDING: ("The list of everything pending, over all jobs.", "PENDING_ENABLED"),
}


class FlagShape(Shape):
    name: Flag
    enabled: bool
    help: str
    setting: str = Field(description="Off here is off, whatever the flag says.")
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
    for name, (help, setting) in FLAGS.items():
        stored = found.get(name, {"enabled": True, "actor": None, "at": None})
        allowed = parts.options.flags[name]
        flags.append(
            FlagShape(
                name=name,
                enabled=allowed and stored["enabled"],
                help=help,
                setting=setting,
                setting_enabled=allowed,
                actor=stored["actor"],
                at=stored["at"],
            )
        )
    return FlagList(flags=flags)


@router.put("/{name}", status_code=204, summary="Switch a flag")
async def change(
    name: Annotated[Flag, Path()], body: FlagChange, person: Admin, parts: PartsOf
) -> None:
    await parts.console.flags.set_flag(name, body.enabled, person.name)


async def is_on(parts: Parts, flag: Flag) -> bool:
    if not parts.options.flags[flag]:
        return False
    stored = (await parts.console.flags.all()).get(flag)
    return stored is None or bool(stored["enabled"])


def require_flag(flag: Flag) -> Callable[[Parts], Awaitable[None]]:
    """For routes that the flag can switch off."""

    async def check(parts: PartsOf) -> None:
        if not await is_on(parts, flag):
            help, setting = FLAGS[flag]
            raise SwitchedOff(
                f"switched off: {help[0].lower()}{help[1:]}",
                f"An admin switches it on: PUT /api/flags/{flag}, or {setting}=true.",
            )

    return check
