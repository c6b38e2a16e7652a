"""The audit: who did what, written in the transaction that does it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from holdfast.kernel.database.database import Database, verb
from holdfast.kernel.database.driver import Transaction

_MOST_STRETCHES = 500


class Audit:
    """The audit log: entries for what changes nothing else in the database, and pruning of old
    entries."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @verb("note_audit")
    async def add(
        self,
        tx: Transaction,
        actor: str,
        action: str,
        job_id: int | None,
        subject: str,
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        await add_audit(tx, actor, action, job_id, subject, detail)

    @verb
    async def prune_audit(self, tx: Transaction, seconds: float, actor: str) -> int:
        """Removes entries older than `seconds`; returns how many.

        Triggers make the audit append-only: rows can go only in a transaction that notes the
        pruning, and the note is in the audit."""
        await tx.run("open_audit_pruning", {"seconds": -seconds, "actor": actor})
        pruned = await tx.take("prune_audit", {})
        await tx.run("close_audit_pruning", {})
        return len(pruned)


def rows_detail(seqs: Iterable[int]) -> dict[str, Any]:
    """Returns the rows that an entry is about, as first and last of each stretch, or nothing if
    there are many stretches."""
    stretches: list[list[int]] = []
    for seq in sorted(set(seqs)):
        if stretches and stretches[-1][1] + 1 == seq:
            stretches[-1][1] = seq
        else:
            stretches.append([seq, seq])
    return {"rows": stretches} if len(stretches) <= _MOST_STRETCHES else {}


async def add_audit(
    tx: Transaction,
    actor: str,
    action: str,
    job_id: int | None,
    subject: str,
    detail: Mapping[str, Any] | None = None,
) -> None:
    params = {
        "actor": actor,
        "action": action,
        "job_id": job_id,
        "subject": subject,
        "detail": orjson.dumps(dict(detail or {})).decode(),
    }
    await tx.run("add_audit", params)
