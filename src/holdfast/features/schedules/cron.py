"""The times of a schedule."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from holdfast.errors import UserError


def next_fire(cron: str, zone: str, now: datetime) -> datetime:
    """Returns the next time after `now`, in UTC; correct across changes of daylight saving time."""
    try:
        local = now.astimezone(ZoneInfo(zone))
    except (ZoneInfoNotFoundError, ValueError, OSError):  # a folder of zones is not a zone
        raise UserError(
            f"there is no time zone {zone!r}", "Use a name such as Europe/Zagreb or UTC."
        ) from None
    try:
        fires_at: datetime = next(CronSim(cron, local))
    except (CronSimError, StopIteration):
        raise UserError(
            f"{cron!r} is not a cron expression",
            'Five fields: minute hour day month weekday, e.g. "0 6 * * *" for 6 a.m. every day.',
        ) from None
    return fires_at.astimezone(ZoneInfo("UTC"))
