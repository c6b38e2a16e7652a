"""Flags that people set."""

from __future__ import annotations

from typing import Any

import orjson

from holdfast.kernel.database.database import Database, verb
from holdfast.kernel.database.driver import Transaction
from holdfast.kernel.database.instants import parse_instant
from holdfast.kernel.jobs.audit import add_audit


class Flags:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> dict[str, dict[str, Any]]:
        """Returns the flags that were set, by name: value, actor and instant."""
        rows = await self._database.fetch("flags")
        return {
            row["name"]: {
                "value": orjson.loads(row["value"]),
                "actor": row["actor"],
                "at": parse_instant(row["at"]),
            }
            for row in rows
        }

    @verb
    async def set_flag(self, tx: Transaction, name: str, value: Any, actor: str) -> None:
        params = {"name": name, "value": orjson.dumps(value).decode(), "actor": actor}
        await tx.run("set_flag", params)
        await add_audit(tx, actor, "flag.set", None, name, {"value": value})
