"""Feature flags that people turned on or off."""

from __future__ import annotations

from typing import Any

from holdfast.store.audit import add_audit
from holdfast.store.database import Database
from holdfast.store.driver import Transaction
from holdfast.store.instants import parse_instant


class Flags:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> dict[str, dict[str, Any]]:
        """The flags that somebody set, by name."""
        rows = await self._database.fetch("flags")
        return {
            name: {"enabled": bool(enabled), "actor": actor, "at": parse_instant(at)}
            for name, enabled, actor, at in rows
        }

    async def set_flag(self, name: str, enabled: bool, actor: str) -> None:
        params = {"name": name, "enabled": int(enabled), "actor": actor}

        async def body(tx: Transaction) -> None:
            await tx.run("set_flag", params)
            await add_audit(tx, actor, "flag.set", None, name, {"enabled": enabled})

        await self._database.write("set_flag", body)
