"""How much one owner may have: files, bytes, exports, unfinished jobs, open items, tokens."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from holdfast.errors import UnfitState
from holdfast.store.admission import Quota, hold_quota, require_owner
from holdfast.store.database import Database
from holdfast.store.driver import Transaction

_WORDS = {
    "files": ("files", "QUOTA_FILES"),
    "bytes": ("bytes of files and exports", "QUOTA_BYTES"),
    "exports": ("exports", "QUOTA_EXPORTS"),
    "jobs": ("unfinished jobs", "QUOTA_JOBS"),
    "items": ("open items", "QUOTA_ITEMS"),
    "tokens": ("live tokens", "QUOTA_TOKENS"),
}


@dataclass(frozen=True, slots=True)
class Amounts:
    """Of one owner: what they have, or what they may have."""

    files: int
    bytes: int
    exports: int
    jobs: int
    items: int
    tokens: int

    def refuse_beyond(self, used: Amounts, more: dict[str, int]) -> None:
        for name, added in more.items():
            limit, have = getattr(self, name), getattr(used, name)
            if have + added > limit:
                words, setting = _WORDS[name]
                raise UnfitState(
                    f"that would be {have + added:,} {words}; the limit per owner is {limit:,}",
                    f"Ask an admin; HOLDFAST_{setting} sets the limit.",
                )


NO_LIMITS = Amounts(*[2**62] * 6)


class Quotas:
    def __init__(self, database: Database, limits: Amounts) -> None:
        self._database = database
        self.limits = limits

    @property
    def of_jobs(self) -> Quota:
        return Quota(self.limits.jobs, self.limits.items)

    async def used(self, owner: str) -> Amounts:
        return _amounts((await self._database.fetch("usage", {"owner": owner}))[0])

    async def require(self, owner: str, **more: int) -> None:
        """Refuses what would go beyond the limits. For what is expensive to make first: it is
        counted again, exactly, in the transaction that keeps it."""
        self.limits.refuse_beyond(await self.used(owner), more)


async def require_room(tx: Transaction, limits: Amounts, owner: str, **more: int) -> None:
    """The same within the transaction that adds it; one at a time for each owner."""
    if limits is NO_LIMITS:
        return
    await require_owner(tx, owner)
    await hold_quota(tx, owner)
    limits.refuse_beyond(_amounts((await tx.fetch("usage", {"owner": owner}))[0]), more)


def _amounts(row: Any) -> Amounts:
    return Amounts(*(int(row[field.name]) for field in fields(Amounts)))
