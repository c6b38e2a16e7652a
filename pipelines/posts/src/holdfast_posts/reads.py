"""Reads what the pages show, from the daily sums and the tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import orjson

from holdfast.pipeline import Fetch, Row

PERIODS = (7, 30, 90, 365)
SENTIMENTS = ("POSITIVE", "NEUTRAL", "NEGATIVE", "NOT_ANALYSED")
RISKS = ("CRITICAL", "HIGH", "MEDIUM", "LOW", "UNKNOWN")
_TIMES = ("sent_at", "received_at", "finished_at", "due_at", "updated_at", "created_at",
          "published_at")  # fmt: skip
_LARGEST_ID = 2**62


@dataclass(frozen=True, slots=True)
class Stack:
    """One day of a chart: where each part begins and how high it is, out of 100."""

    day: str
    total: int
    parts: Sequence[tuple[str, int, float, float]]  # name, count, y, height


@dataclass(frozen=True, slots=True)
class Overview:
    posts: int
    viral: int
    sentiments: Mapping[str, int]
    intents: Sequence[tuple[str, int]]
    risks: Mapping[str, int]
    platforms: Sequence[tuple[str, int]]
    by_sentiment: Sequence[Stack]
    by_risk: Sequence[Stack]


class PostsReads:
    def __init__(self, fetch: Fetch, now: datetime) -> None:
        self._fetch = fetch
        self._now = now

    def since(self, days: int) -> str:
        return (self._now.date() - timedelta(days=days - 1)).isoformat()

    async def projects(self) -> list[dict[str, Any]]:
        return [_shown(row) for row in await self._fetch("posts_projects", {"limit": 500})]

    async def overview(self, scope: str, days: int) -> Overview:
        params = {"scope": scope, "since": self.since(days)}
        rows = await self._fetch("posts_days_of_scope", params)
        counts = {name: Counter[str]() for name in ("sentiment", "intent", "risk", "platform")}
        for row in rows:
            for name, counter in counts.items():
                counter[row[name]] += row["posts"]
        shown = _days(rows, self._now.date(), days)
        return Overview(
            sum(row["posts"] for row in rows),
            sum(row["viral"] for row in rows),
            counts["sentiment"],
            counts["intent"].most_common(),
            counts["risk"],
            counts["platform"].most_common(),
            _stacks(rows, shown, "sentiment", SENTIMENTS),
            _stacks(rows, shown, "risk", RISKS[:3]),
        )

    async def top(self, scope: str, days: int) -> list[dict[str, Any]]:
        params = {"scope": scope, "since": self.since(days), "limit": 20}
        return [_shown(row) for row in await self._fetch("posts_top", params)]

    async def errors_by_day(self, scope: str | None, days: int) -> dict[str, Any]:
        """Returns codes with their counts by day, the most frequent first."""
        params = {"scope": scope, "since": self.since(days)}
        rows = await self._fetch("posts_errors_by_day", params)
        # Today first: on a narrow screen, people scroll to the rest.
        shown = [(self._now.date() - timedelta(days=ago)).isoformat() for ago in range(days)]
        codes: dict[tuple[str, str], dict[str, int]] = {}
        for row in rows:
            codes.setdefault((row["code"], row["category"]), {})[row["day"]] = int(row["errors"])
        lines: list[dict[str, Any]] = [
            {"code": code, "category": category, "total": sum(by_day.values()),
             "days": [by_day.get(day, 0) for day in shown]}
            for (code, category), by_day in codes.items()
        ]  # fmt: skip
        lines.sort(key=lambda line: -line["total"])
        most = max((count for line in lines for count in line["days"]), default=0)
        return {"days": shown, "lines": lines, "most": most}

    async def recent_errors(self, scope: str | None, code: str | None) -> list[dict[str, Any]]:
        params = {"scope": scope, "code": code, "limit": 50}
        return [_shown(row) for row in await self._fetch("posts_recent_errors", params)]

    async def batches(
        self, scope: str | None, word: str | None, before: int | None, limit: int
    ) -> list[dict[str, Any]]:
        params = {"scope": scope, "word": word, "before": before or _LARGEST_ID, "limit": limit}
        return [_shown(row) for row in await self._fetch("posts_batches", params)]

    async def batch(self, batch_id: int) -> dict[str, Any] | None:
        rows = await self._fetch("posts_batch", {"id": batch_id})
        return _shown(rows[0]) if rows else None

    async def items(self, batch_id: int, limit: int = 500) -> list[dict[str, Any]]:
        params = {"batch_id": batch_id, "limit": limit}
        return [_shown(row) for row in await self._fetch("posts_items_of_batch", params)]

    async def messages(
        self, state: str | None, word: str | None, limit: int = 200
    ) -> list[dict[str, Any]]:
        params = {"state": state, "word": word, "limit": limit}
        return [_shown(row) for row in await self._fetch("posts_events_of", params)]

    async def message_counts(self) -> dict[str, int]:
        counts: Counter[str] = Counter()
        for row in await self._fetch("posts_event_counts"):
            counts[row["state"]] += row["events"]
        return dict(counts)


def _shown(row: Row) -> dict[str, Any]:
    shown = {name: row[name] for name in row.keys()}  # noqa: SIM118
    for name in _TIMES:
        if isinstance(shown.get(name), str):
            shown[name] = datetime.fromisoformat(shown[name])
    warnings = shown.get("warnings")
    if isinstance(warnings, str):
        shown["warnings"] = orjson.loads(warnings)
    return shown


def _days(rows: Iterable[Row], today: date, days: int) -> list[str]:
    """Returns the days from the first one with posts in the period to today."""
    first = min((row["day"] for row in rows), default=today.isoformat())
    every = [(today - timedelta(days=ago)).isoformat() for ago in range(days)][::-1]
    return [day for day in every if day >= first] or every[-1:]


def _stacks(
    rows: Iterable[Row], days: Sequence[str], field: str, names: Sequence[str]
) -> list[Stack]:
    counts: dict[str, Counter[str]] = {day: Counter() for day in days}
    for row in rows:
        if row["day"] in counts and row[field] in names:
            counts[row["day"]][row[field]] += row["posts"]
    most = max((sum(counter.values()) for counter in counts.values()), default=0) or 1
    stacks = []
    for day, counter in counts.items():
        y, parts = 100.0, []
        for name in names:
            height = 100.0 * counter[name] / most
            y -= height
            parts.append((name, counter[name], round(y, 2), round(height, 2)))
        stacks.append(Stack(day, sum(counter.values()), parts))
    return stacks


def now_in_utc(now: datetime) -> datetime:
    return now.astimezone(UTC)
