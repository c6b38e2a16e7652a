"""Flags: values that an admin changes while processes run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr

from holdfast.api.dependencies import Parts
from holdfast.api.identity import Admin, PartsOf, Someone
from holdfast.api.problems import SwitchedOff
from holdfast.api.shapes import Shape
from holdfast.errors import NotThere
from holdfast.flags import Flag as Flag
from holdfast.flags import FlagKind, ServedFlag

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
    setting: str | None = Field(description="Off here is off, whatever the flag says.")
    setting_enabled: bool
    actor: str | None
    at: datetime | None


class FlagList(Shape):
    flags: list[FlagShape]


class FlagChange(Shape):
    value: StrictBool | StrictInt | StrictFloat | Annotated[StrictStr, Field(max_length=200)]


@router.get("", summary="List the flags")
async def index(person: Someone, parts: PartsOf) -> FlagList:
    stored = await parts.store.flags.all()
    unset = {"value": None, "actor": None, "at": None}
    flags = parts.options.flags.items()
    return FlagList(flags=[_shape(flag, stored.get(name, unset)) for name, flag in flags])


def _shape(flag: ServedFlag, stored: Mapping[str, Any]) -> FlagShape:
    spec = flag.spec
    integer = spec.kind is FlagKind.INTEGER
    return FlagShape(
        name=spec.name,
        kind=spec.kind,
        value=flag.value(stored["value"]),
        default=spec.default,
        choices=list(spec.choices),
        minimum=spec.minimum if integer else None,
        maximum=spec.maximum if integer else None,
        help=spec.help,
        setting=flag.setting,
        setting_enabled=flag.allowed,
        actor=stored["actor"],
        at=stored["at"],
    )


@router.put("/{name}", status_code=204, summary="Set a flag")
async def change(
    name: Annotated[str, Path(max_length=100)], body: FlagChange, person: Admin, parts: PartsOf
) -> None:
    value = flag_named(parts, name).spec.checked(body.value)
    await parts.store.flags.set_flag(name, value, person.name)


def flag_named(parts: Parts, name: str) -> ServedFlag:
    flag = parts.options.flags.get(name)
    if flag is None:
        known = ", ".join(parts.options.flags)
        raise NotThere(f"there is no flag {name!r}", f"Flags: {known}.")
    return flag


async def is_on(parts: Parts, flag: str) -> bool:
    stored = (await parts.store.flags.all()).get(flag)
    return parts.options.flags[flag].value(stored and stored["value"]) is True


def require_flag(name: str) -> Callable[[Parts], Awaitable[None]]:
    """For routes that the flag can switch off."""

    async def check(parts: PartsOf) -> None:
        if not await is_on(parts, name):
            flag = parts.options.flags[name]
            text = flag.spec.help
            hint = f"An admin switches it on: PUT /api/flags/{name}"
            raise SwitchedOff(
                f"switched off: {text[0].lower()}{text[1:]}",
                f"{hint}, or {flag.setting}=true." if flag.setting else f"{hint}.",
            )

    return check
