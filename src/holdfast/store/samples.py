"""Samples of running jobs' counters: one small row for each job every ten seconds."""

from __future__ import annotations

from datetime import datetime

from holdfast.store.database import Database
from holdfast.store.driver import Transaction
from holdfast.store.instants import parse_instant

BUCKET_SECONDS = 10
_KEPT_BUCKETS = 14 * 86_400 // BUCKET_SECONDS


class Samples:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def take_samples(self) -> None:
        """Once in a bucket, however often it is called."""
        now = await current_bucket(self._database)

        async def body(tx: Transaction) -> None:
            await tx.run("take_samples", {"bucket": now})
            await tx.run("forget_samples", {"bucket": now - _KEPT_BUCKETS})

        await self._database.write("take_samples", body, relaxed=True)


async def current_bucket(database: Database) -> int:
    now = parse_instant((await database.fetch("database_now"))[0][0])
    assert isinstance(now, datetime)
    return int(now.timestamp()) // BUCKET_SECONDS
