"""Feature flags: on where both the settings and the database say so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from holdfast.console import Console
from holdfast.errors import NotThere, UserError
from holdfast.extension import FlagSpec


class Flag(StrEnum):
    """The flags of the core; extensions add their own."""

    INGEST = "ingest"
    PENDING = "pending"


FLAGS = (
    FlagSpec(Flag.INGEST, "Uploads, and new jobs over files.", "db_ingest_enabled"),
    FlagSpec(Flag.PENDING, "The list of pending items across all jobs.", "pending_enabled"),
)


class SwitchedOff(UserError):
    """The feature is switched off by a flag."""


@dataclass(frozen=True, slots=True)
class ServedFlag:
    """A flag of the core or of an extension that is served here."""

    name: str
    help: str
    setting: str | None  # the name under which people set it
    allowed: bool  # the setting's value; the database can only switch it off


@dataclass(frozen=True, slots=True)
class FlagState:
    name: str
    enabled: bool
    help: str
    setting: str | None
    setting_enabled: bool
    actor: str | None
    at: datetime | None


class FeatureFlags:
    def __init__(self, console: Console, served: Mapping[str, ServedFlag]) -> None:
        self._table = console.flags
        self._served = served

    async def all(self) -> list[FlagState]:
        stored = await self._table.all()
        unset = {"enabled": True, "actor": None, "at": None}
        return [_state(flag, stored.get(flag.name, unset)) for flag in self._served.values()]

    async def is_on(self, name: str) -> bool:
        if not self._served[name].allowed:
            return False
        stored = (await self._table.all()).get(name)
        return stored is None or bool(stored["enabled"])

    async def require(self, name: str) -> None:
        if await self.is_on(name):
            return
        flag = self._served[name]
        setting = f", or {flag.setting}=true" if flag.setting else ""
        raise SwitchedOff(
            f"switched off: {flag.help[0].lower()}{flag.help[1:].rstrip('.')}",
            f"An admin can switch it on: the flag {name}{setting}.",
        )

    async def change(self, name: str, enabled: bool, actor: str) -> None:
        if name not in self._served:
            raise NotThere(f"there is no flag {name!r}", f"Flags: {', '.join(self._served)}.")
        await self._table.set_flag(name, enabled, actor)


def _state(flag: ServedFlag, stored: Mapping[str, object]) -> FlagState:
    actor, at = stored["actor"], stored["at"]
    return FlagState(
        name=flag.name,
        enabled=flag.allowed and bool(stored["enabled"]),
        help=flag.help,
        setting=flag.setting,
        setting_enabled=flag.allowed,
        actor=None if actor is None else str(actor),
        at=at if isinstance(at, datetime) else None,
    )
