"""Secrets that the server signs with. The first process that needs one creates it."""

from __future__ import annotations

from holdfast.kernel.database.database import Database, verb
from holdfast.kernel.database.driver import Transaction


class Secrets:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def secret(self, name: str, fresh: str) -> str:
        """Returns the secret of that name; `fresh` becomes it if there is none."""
        rows = await self._database.fetch("secret", {"name": name})
        if not rows:
            await self._add_secret(name, fresh)
            rows = await self._database.fetch("secret", {"name": name})
        return str(rows[0][0])

    @verb
    async def _add_secret(self, tx: Transaction, name: str, value: str) -> None:
        await tx.run("add_secret", {"name": name, "value": value})
