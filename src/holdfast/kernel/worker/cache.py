"""The cache: look-ups that may be used again until they expire, by scope and key."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from holdfast.kernel.database.database import Database, verb
from holdfast.kernel.database.driver import Transaction, Values
from holdfast_client.storable import storable_key

_PRUNED_AT_ONCE = 1000
_KEY_CHARACTERS = 500  # PostgreSQL's index entries have at most 2,700 bytes
_LONGEST_SECONDS = 10 * 365 * 86_400.0


class Cache:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, scope: str, keys: Iterable[str]) -> dict[str, Any]:
        """Returns the entries that have not expired.

        An entry whose value is None says that there is none."""
        by_stored = {stored_key(key): key for key in keys}
        if not by_stored:
            return {}
        params = {"scope": scope, "keys": list(by_stored)}
        rows = await self._database.fetch("cached", params)
        return {by_stored[row["key"]]: orjson.loads(row["value"]) for row in rows}

    async def put(self, scope: str, entries: Mapping[str, tuple[Any, float]]) -> None:
        """Stores entries, each a value and the seconds until it expires; replaces what is there."""
        rows: list[Values] = [
            (scope, stored_key(key), orjson.dumps(value).decode(), min(seconds, _LONGEST_SECONDS))
            for key, (value, seconds) in entries.items()
            if seconds > 0
        ]
        if rows:
            # Sorted everywhere, so that two batches cannot deadlock.
            await self._put(sorted(rows, key=lambda row: str(row[1])))

    # A cache may lose its last entries in a crash of the database.
    @verb("put_cache", relaxed=True)
    async def _put(self, tx: Transaction, rows: Sequence[Values]) -> None:
        await tx.take_many("put_cached", rows)

    @verb("drop_cache", relaxed=True)
    async def drop(self, tx: Transaction, scope: str, keys: Sequence[str]) -> None:
        await tx.run("drop_cached", {"scope": scope, "keys": [stored_key(key) for key in keys]})

    @verb(relaxed=True)
    async def prune_cache(self, tx: Transaction) -> int:
        """Removes a limited number of expired entries; returns how many."""
        return len(await tx.take("prune_cached", {"most": _PRUNED_AT_ONCE}))


def stored_key(key: str) -> str:
    """Returns the key as the table has it: long keys are replaced by their hash."""
    text = storable_key(key) or ""
    if len(text) <= _KEY_CHARACTERS:
        return text
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
