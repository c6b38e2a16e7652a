"""Nudges: messages that say that a job has work.

They decide only how many workers there are: workers find their work in the database.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from holdfast.kernel.database.database import Database, verb
from holdfast.kernel.database.driver import Transaction


class Nudge(NamedTuple):
    job_id: int
    pipeline: str
    message_id: str


class Nudges:
    def __init__(self, database: Database) -> None:
        self._database = database

    @verb
    async def add_nudges(self, tx: Transaction, backfill: bool) -> list[Nudge]:
        """Adds one nudge, to be sent now, for each job that has work and none out.

        `backfill`: whether workers may work on backfills."""
        rows = await tx.take("add_nudges", {"backfill": int(backfill)})
        return [Nudge(*row) for row in rows]

    @verb(relaxed=True)
    async def keep_nudges(
        self, tx: Transaction, held: Collection[Nudge], ended: Collection[Nudge] = ()
    ) -> set[str]:
        """Notes that a worker holds these nudges; returns the ids of those that it is to keep.

        It acknowledges the others: their job has no work, or another message is out for it.
        `ended`: it lets go of these in any case, and others are sent if their jobs have work."""
        kept = {row[0] for row in await tx.take("see_nudges", _ids(held))} if held else set()
        others = [nudge for nudge in held if nudge.message_id not in kept]
        if others or ended:
            await tx.run("drop_nudges", _ids([*others, *ended]))
        return kept

    async def unseen(self, seconds: float) -> list[Nudge]:
        """Returns the nudges that no worker has held for that long."""
        rows = await self._database.fetch("unseen_nudges", {"ago": -seconds})
        return [Nudge(*row) for row in rows]

    @verb
    async def renew_nudges(self, tx: Transaction, lost: Collection[Nudge]) -> list[Nudge]:
        """Returns the nudges to send in place of lost ones whose jobs still have work."""
        renewed = [Nudge(*row) for row in await tx.take("renew_nudges", _ids(lost))]
        await tx.run("drop_nudges", _ids(lost))
        return renewed

    async def counts(self) -> Mapping[str, int]:
        """Returns how many nudges are out, by pipeline."""
        return {row[0]: int(row[1]) for row in await self._database.fetch("count_nudges")}


def _ids(nudges: Collection[Nudge]) -> dict[str, Any]:
    return {
        "job_ids": [nudge.job_id for nudge in nudges],
        "message_ids": [nudge.message_id for nudge in nudges],
    }
