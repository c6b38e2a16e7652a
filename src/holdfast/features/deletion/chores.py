"""Carries out deletions, and deletes what is older than its policy allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.features.deletion.compose import deleter_of, retention_of
from holdfast.kernel.worker.chores import Chore
from holdfast.kernel.worker.upkeep.parts import UpkeepParts

if TYPE_CHECKING:
    from holdfast.configuration import Settings

_RETAIN_SECONDS = 60.0


def chores(parts: UpkeepParts, settings: Settings) -> list[Chore]:
    deleter = deleter_of(settings, parts.store, parts.log)
    retention = retention_of(settings, parts.store, parts.log)

    async def retain() -> None:
        """Does nothing while another process has the duty."""
        if await parts.store.workers.hold_duty("retention", parts.holder):
            await retention.apply()

    return [
        Chore("delete", parts.limits.sweep_seconds, deleter.look),
        Chore("retention", _RETAIN_SECONDS, retain),
    ]
