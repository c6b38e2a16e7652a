"""Decisions of the controllers, kept with the job they were made for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.kernel.database.driver import Transaction


class DecisionRow(NamedTuple):
    what: str
    was: float
    became: float
    why: str


async def add_decisions(
    tx: Transaction, job_id: int, worker: str, decisions: Sequence[DecisionRow]
) -> None:
    for decision in decisions:
        await tx.run("add_decision", {"job_id": job_id, "worker": worker, **decision._asdict()})
