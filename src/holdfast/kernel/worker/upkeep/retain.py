"""Retention: deletes what is older than its policy allows."""

from __future__ import annotations

from holdfast.kernel.worker.upkeep.parts import UpkeepParts


async def retain(parts: UpkeepParts) -> None:
    """Does nothing while another process has the duty."""
    if await parts.store.workers.hold_duty("retention", parts.holder):
        await parts.retention.apply()
