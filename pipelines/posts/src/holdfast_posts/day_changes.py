"""Collects what a settlement adds to the sums of days, and subtracts from them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holdfast.model import Json
from holdfast.pipeline import Row

#: scope, day, platform, sentiment, intent, risk
Day = tuple[str, str, str, str, str, str]


class DayChanges:
    def __init__(self) -> None:
        self._sums: dict[Day, tuple[int, int, float]] = {}

    def add(self, posts: Iterable[Json]) -> None:
        """Adds posts that count from now on, as `posts_insert` takes them."""
        for post in posts:
            day = (
                post["scope"],
                post["day"],
                post["platform"],
                post["overall_sentiment"] or "NOT_ANALYSED",
                post["primary_intent"],
                post["risk_level"] or "UNKNOWN",
            )
            self._change(day, 1, post["is_viral"] or 0, post["impact_score"] or 0.0)

    def remove(self, row: Row) -> None:
        """Subtracts a post as it counted until now."""
        names = ("scope", "day", "platform", "sentiment", "intent", "risk")
        scope, day, platform, sentiment, intent, risk = (row[name] for name in names)
        key = (scope, day, platform, sentiment, intent, risk)
        self._change(key, -1, -row["viral"], -row["impact"])

    def merge(self, rows: Iterable[Row]) -> None:
        """Adds changes that were stored before."""
        for row in rows:
            key = (row["scope"], row["day"], row["platform"], row["sentiment"], row["intent"])
            self._change((*key, row["risk"]), row["posts"], row["viral"], row["impact_sum"])

    def _change(self, day: Day, posts: int, viral: int, impact: float) -> None:
        before = self._sums.get(day, (0, 0, 0.0))
        self._sums[day] = (before[0] + posts, before[1] + viral, before[2] + impact)

    def rows(self) -> list[tuple[Any, ...]]:
        """Returns the changes in the order of their keys; without those that cancel out."""
        return [(*day, *sums) for day, sums in sorted(self._sums.items()) if any(sums)]
