"""How much one owner may have: files, bytes, exports, unfinished jobs, open items, tokens."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from holdfast.errors import UnfitState
from holdfast.kernel.database.database import Database
from holdfast.kernel.database.driver import Transaction
from holdfast.kernel.jobs.admission import Quota, hold_quota, require_owner
from holdfast.settings import setting

_WORDS = {
    "files": ("files", "Delete some."),
    "bytes": ("bytes of files and exports", "Ask an admin; HOLDFAST_QUOTA_BYTES sets the limit."),
    "exports": ("exports", "Delete some."),
    "jobs": ("unfinished jobs", "Ask an admin; HOLDFAST_QUOTA_JOBS sets the limit."),
    "items": ("open items", "Ask an admin; HOLDFAST_QUOTA_ITEMS sets the limit."),
    "tokens": ("live tokens", "Revoke some."),
}


@dataclass(frozen=True, slots=True)
class Amounts:
    """Amounts of one owner: what they have, or what they may have."""

    files: int = 10_000
    bytes: int = setting(
        100 * 1024**3,
        "Maximum size of the files and exports of one owner, in bytes.",
        0,
        2**62,
        name="QUOTA_BYTES",
    )
    exports: int = 1_000
    jobs: int = setting(
        1_000,
        "Maximum number of unfinished jobs per owner, counted when one is started over HTTP.",
        0,
        10**12,
        name="QUOTA_JOBS",
    )
    items: int = setting(
        100_000_000,
        "Maximum number of open items per owner, counted when a job is started over HTTP or by"
        " an adapter, or its maximum is raised over HTTP: it gets no more than what is left; and"
        " when records are added over HTTP.",
        0,
        10**12,
        name="QUOTA_ITEMS",
    )
    tokens: int = 50

    def refuse_beyond(self, used: Amounts, more: dict[str, int]) -> None:
        for name, added in more.items():
            limit, have = getattr(self, name), getattr(used, name)
            if have + added > limit:
                words, hint = _WORDS[name]
                raise UnfitState(
                    f"that would be {have + added:,} {words}; the limit per owner is {limit:,}",
                    hint,
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
        """Refuses what would go beyond the limits, before something expensive is created: it is
        counted again, exactly, in the transaction that stores it."""
        self.limits.refuse_beyond(await self.used(owner), more)


async def require_room(tx: Transaction, limits: Amounts, owner: str, **more: int) -> None:
    """Refuses what would go beyond the limits, within the transaction that adds it and for one
    request of an owner at a time."""
    if limits is NO_LIMITS:
        return
    await require_owner(tx, owner)
    await hold_quota(tx, owner)
    limits.refuse_beyond(_amounts((await tx.fetch("usage", {"owner": owner}))[0]), more)


def _amounts(row: Any) -> Amounts:
    return Amounts(*(int(row[field.name]) for field in fields(Amounts)))
