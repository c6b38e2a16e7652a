"""Samples of running jobs' counters: one small row for each job every ten seconds."""

from __future__ import annotations

from datetime import datetime

from holdfast.kernel.database.database import Database, verb
from holdfast.kernel.database.driver import Transaction
from holdfast.kernel.database.instants import parse_instant

BUCKET_SECONDS = 10


class Samples:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def take_samples(self) -> None:
        """Takes one sample per bucket, however often it is called."""
        await self._take_samples(await current_bucket(self._database))

    @verb(relaxed=True)
    async def _take_samples(self, tx: Transaction, bucket: int) -> None:
        await tx.run("take_samples", {"bucket": bucket})


async def current_bucket(database: Database) -> int:
    now = parse_instant((await database.fetch("database_now"))[0][0])
    assert isinstance(now, datetime)
    return int(now.timestamp()) // BUCKET_SECONDS
