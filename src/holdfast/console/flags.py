"""Feature flags that people turned on or off."""

from __future__ import annotations

from typing import Any

from holdfast.store.audit import add_audit
from holdfast.store.database import Database, verb
from holdfast.store.driver import Transaction
from holdfast.store.instants import parse_instant


class Flags:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> dict[str, dict[str, Any]]:
        """The flags that somebody set, by name."""
        rows = await self._database.fetch("flags")
        return {
            row["name"]: {
                "enabled": bool(row["enabled"]),
                "actor": row["actor"],
                "at": parse_instant(row["at"]),
            }
            for row in rows
        }

    @verb
    async def set_flag(self, tx: Transaction, name: str, enabled: bool, actor: str) -> None:
        params = {"name": name, "enabled": int(enabled), "actor": actor}
        await tx.run("set_flag", params)
        await add_audit(tx, actor, "flag.set", None, name, {"enabled": enabled})
