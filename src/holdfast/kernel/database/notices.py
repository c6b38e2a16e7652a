"""Notices: on PostgreSQL, a commit tells workers that a job has work for them.

On SQLite they watch the file. Records that an application adds follow another rule, made for many
commits in a second: `notify_work`.
"""

from __future__ import annotations

from holdfast.kernel.database.driver import Transaction


async def tell_workers(tx: Transaction, *job_ids: int) -> None:
    """Wakes workers when this transaction commits.

    Without a notice they find the work a little later."""
    if job_ids:
        await tx.run("tell_workers", {"job_ids": sorted(set(job_ids))})
