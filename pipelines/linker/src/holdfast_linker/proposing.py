"""Decides in bulk: which entries of a project match, and what is decided about each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from holdfast.model import Json
from holdfast.pipeline import Fetch
from holdfast.rulings import Proposal, RulingKind
from holdfast_linker.tasks import TaskState

BulkAction = Literal["accept_first", "none"]


@dataclass(frozen=True, slots=True)
class Criteria:
    """Entries of a project in one state with a score from `low` to `high`."""

    project: int
    action: BulkAction
    state: str = str(TaskState.AWAITING_REVIEW)
    low: float = -1.0
    high: float = 1000.0

    def to_json(self) -> Json:
        return asdict(self)

    @property
    def _params(self) -> dict[str, Any]:
        return {
            "project_id": self.project,
            "state": self.state,
            "low": self.low,
            "high": self.high,
            "needs_candidate": int(self.action == "accept_first"),
        }

    async def count_by_job(self, fetch: Fetch) -> dict[int, int]:
        rows = await fetch("linker_count_proposals", self._params)
        return {row["job_id"]: row["entries"] for row in rows}

    async def page(self, fetch: Fetch, job_id: int, after: int, limit: int) -> list[Proposal]:
        position = {"job_id": job_id, "after": after, "limit": limit}
        rows = await fetch("linker_proposals", self._params | position)
        if self.action == "none":
            return [Proposal(row["seq"], RulingKind.REJECT) for row in rows]
        return [Proposal(row["seq"], RulingKind.CHOOSE, {"item": row["item"]}) for row in rows]


async def proposals(
    fetch: Fetch, job_id: int, criteria: Json, after: int, limit: int
) -> Sequence[Proposal]:
    return await Criteria(**criteria).page(fetch, job_id, after, limit)
