"""Secrets that the server signs with. The first process that needs one makes it."""

from __future__ import annotations

from holdfast.store.database import Database
from holdfast.store.driver import Transaction


class Secrets:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def secret(self, name: str, fresh: str) -> str:
        """The secret of that name; `fresh` becomes it where there is none."""
        rows = await self._database.fetch("secret", {"name": name})
        if not rows:
            await self._add_secret(name, fresh)
            rows = await self._database.fetch("secret", {"name": name})
        return str(rows[0][0])

    async def _add_secret(self, name: str, value: str) -> None:
        async def body(tx: Transaction) -> None:
            await tx.run("add_secret", {"name": name, "value": value})

        await self._database.write("add_secret", body)
