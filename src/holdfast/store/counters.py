"""Adds to a job's counters: one row per job and worker, so that workers do not block each other."""

from __future__ import annotations

from dataclasses import fields

from holdfast.model import Counters
from holdfast.store.driver import Transaction

_ZERO = {field.name: 0 for field in fields(Counters)}


async def add_counts(tx: Transaction, job_id: int, worker: str, **counts: int) -> None:
    await tx.run("count", {**_ZERO, **counts, "job_id": job_id, "worker": worker})
