"""Remembers numbers used once: a signed request cannot be sent a second time."""

from __future__ import annotations

from holdfast.kernel.database.database import Database, verb
from holdfast.kernel.database.driver import Transaction


class Nonces:
    def __init__(self, database: Database) -> None:
        self._database = database

    @verb
    async def use_nonce(self, tx: Transaction, scope: str, nonce: str) -> bool:
        """Notes the number; returns False if it was used before."""
        return bool(await tx.take("use_nonce", {"scope": scope, "nonce": nonce}))
