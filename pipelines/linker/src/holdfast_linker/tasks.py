"""The states of an entry and the columns of its result."""

from __future__ import annotations

from enum import StrEnum


class TaskState(StrEnum):
    AWAITING_REVIEW = "awaiting_review"
    AUTO_CONFIRMED = "auto_confirmed"
    NO_CANDIDATES = "no_candidates_found"
    REVIEWED = "reviewed"
    FAILED = "failed"


#: The state of a task whose entry a message moved to another job; no project shows it.
MOVED = "moved"


class CandidateStatus(StrEnum):
    SUGGESTED = "suggested"
    ACCEPTED = "accepted"
    REJECTED = "rejected"


#: The columns of a job's results.
COLUMNS = (
    "id", "name", "state", "item", "label", "description", "score", "candidates", "reason"
)  # fmt: skip


def task_id(job_id: int, seq: int) -> int:
    """Returns one number for a task, by which messages name it."""
    return job_id << 32 | seq


def split_task_id(number: int) -> tuple[int, int]:
    return number >> 32, number & 0xFFFFFFFF
