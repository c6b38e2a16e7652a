"""Changes a job's state: each change locks the job's row and asks the model whether it is legal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.errors import NotThere, UnfitState
from holdfast.kernel.database.driver import Transaction
from holdfast.kernel.jobs.audit import add_audit
from holdfast.model import JobState, next_job_state


async def locked_state(tx: Transaction, job_id: int) -> JobState:
    rows = await tx.fetch("job_state", {"job_id": job_id})
    if not rows:
        raise NotThere(f"there is no job {job_id}", "`holdfast jobs` lists the jobs.")
    try:
        return JobState(rows[0]["state"])
    except ValueError:
        raise UnfitState(
            f"job {job_id} is in the state {rows[0]['state']}, which this version does not know",
            "Use the version of Holdfast that wrote it.",
        ) from None


async def require(tx: Transaction, job_id: int, verb: str) -> None:
    """Locks the job's row, so that it cannot finish between this check and a new range."""
    next_job_state(verb, await locked_state(tx, job_id))


async def move(
    tx: Transaction, job_id: int, verb: str, actor: str, detail: Mapping[str, Any] | None = None
) -> JobState:
    state = next_job_state(verb, await locked_state(tx, job_id))
    await tx.run("set_job_state", {"job_id": job_id, "state": state, "error": None})
    await add_audit(tx, actor, verb, job_id, "", detail)
    return state
