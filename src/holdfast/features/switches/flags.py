"""Flags as admins see and change them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from holdfast.errors import NotThere, SwitchedOff
from holdfast.flags import Flag as Flag
from holdfast.flags import FlagKind, FlagValue, ServedFlag

if TYPE_CHECKING:
    from holdfast.features.console import Console


@dataclass(frozen=True, slots=True)
class FlagState:
    name: str
    kind: FlagKind
    value: FlagValue
    default: FlagValue
    choices: list[str]
    minimum: int | None
    maximum: int | None
    help: str
    setting: str | None
    setting_enabled: bool
    actor: str | None
    at: datetime | None


class FeatureFlags:
    def __init__(self, console: Console, served: Mapping[str, ServedFlag]) -> None:
        self._table = console.store.flags
        self._served = served

    async def all(self) -> list[FlagState]:
        stored = await self._table.all()
        unset = {"value": None, "actor": None, "at": None}
        return [_state(flag, stored.get(name, unset)) for name, flag in self._served.items()]

    async def is_on(self, name: str) -> bool:
        stored = (await self._table.all()).get(name)
        return self._served[name].value(stored and stored["value"]) is True

    async def require(self, name: str) -> None:
        if await self.is_on(name):
            return
        flag, text = self._served[name], self._served[name].spec.help
        setting = f", or {flag.setting}=true" if flag.setting else ""
        raise SwitchedOff(
            f"switched off: {text[0].lower()}{text[1:].rstrip('.')}",
            f"An admin can switch it on: the flag {name}{setting}.",
        )

    async def change(self, name: str, value: Any, actor: str) -> None:
        await self._table.set_flag(name, self._named(name).spec.checked(value), actor)

    async def change_to(self, name: str, text: str, actor: str) -> None:
        """Sets the value that a person wrote."""
        await self.change(name, self._named(name).spec.parsed(text), actor)

    def _named(self, name: str) -> ServedFlag:
        if name not in self._served:
            raise NotThere(f"there is no flag {name!r}", f"Flags: {', '.join(self._served)}.")
        return self._served[name]


def _state(flag: ServedFlag, stored: Mapping[str, Any]) -> FlagState:
    spec = flag.spec
    integer = spec.kind is FlagKind.INTEGER
    return FlagState(
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
