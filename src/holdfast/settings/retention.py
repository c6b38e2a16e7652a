"""The settings that say how long things are kept, as one group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.settings.declared import setting
from holdfast.settings.files import FileSettings


def _days(default: float | None, help: str) -> Any:
    return setting(default, help, 0.001, 36_500, shown=None if default else "no limit")


# Dataclasses with slots can have one base only, so that each group extends the one before it.
@dataclass(frozen=True, slots=True)
class RetentionSettings(FileSettings):
    retain_jobs_days: float | None = _days(
        None, "Jobs that ended longer ago are deleted, except the last on each source."
    )
    retain_jobs_count: int | None = setting(
        None, "Maximum number of ended jobs per owner; older ones are deleted.", 1, 10**12,
        shown="no limit",
    )  # fmt: skip
    retain_items_days: float | None = _days(
        None,
        "Finished items of standing jobs are deleted at this age, except those with a decision.",
    )
    retain_attempts_days: float | None = _days(
        None, "Earlier tries of items are deleted this long after their job ended."
    )
    retain_decisions_days: float | None = _days(
        90, "Age at which changes of the controllers are deleted."
    )
    retain_samples_days: float | None = _days(14, "Age at which figures for charts are deleted.")
    retain_inbox_days: float | None = _days(
        14, "Age at which keys of requests and ids of taken messages are deleted."
    )
    retain_audit_days: float | None = _days(None, "Age at which audit entries are deleted.")
    retain_files_days: float | None = _days(
        None, "Age at which stored files without a job are deleted."
    )
    retain_exports_days: float | None = _days(None, "Age at which exports are deleted.")
