"""Trays: the tables that records which come alone pass through on PostgreSQL, emptied in turn.

A row that is deleted stays in its table while any transaction that is older is open; `truncate`
leaves nothing. One tray is filled; what is left of the others is moved to tray 0, which stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from holdfast.clock import Clock
from holdfast.store.database import Database
from holdfast.store.driver import Conflict, Row

#: A tray whose ranges take more is not filled any further; its counters, a quarter of that.
_MOST_BYTES = 1024 * 1024
_COUNTERS_SHARE = 4
#: With more than this left in it, a tray waits until workers have finished it.
_MOST_LEFT_BEHIND = 200
#: Snapshots that are older than a truncation do not see it: they would miss what was in the tray
#: when they began. A backup takes its snapshot first, and locks the tables within this time.
_REST_SECONDS = 30.0


class Trays:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._rests: dict[int, tuple[int, float]] = {}  # how much was written, and since when

    async def turn(
        self, most_bytes: int = _MOST_BYTES, rest_seconds: float = _REST_SECONDS
    ) -> None:
        """Empties the trays that are not filled any more, and fills another one if the current
        tray is large. One that is in use is left for the next time."""
        if "trays" not in self._database.driver.queries:
            return  # SQLite leaves nothing behind
        for tray in await self._database.fetch("trays"):
            if tray["filling"] or _is_empty(tray):
                self._rests.pop(tray["number"], None)
            else:
                await self._empty(tray, rest_seconds)
        trays = await self._database.fetch("trays")
        current = next(tray for tray in trays if tray["filling"])
        empty = [tray["number"] for tray in trays if _is_empty(tray)]
        if empty and _is_large(current, most_bytes):
            await self._unless_used("turn_to_tray", {"number": empty[0]})

    async def _empty(self, tray: Row, rest_seconds: float) -> None:
        number = {"number": tray["number"]}
        if await self._database.fetch("tray_is_used", number):
            self._rests.pop(tray["number"], None)
            await self._unless_used("fold_tray", number)
            await self._unless_used("move_left_behind", number | {"most": _MOST_LEFT_BEHIND})
        elif self._has_rested(tray, rest_seconds):
            await self._unless_used("empty_tray", number)

    def _has_rested(self, tray: Row, rest_seconds: float) -> bool:
        """Whether nothing was in it, or written to it, for so long."""
        now = self._clock.monotonic()
        written, since = self._rests.get(tray["number"], (None, now))
        if written != tray["written"]:
            self._rests[tray["number"]] = tray["written"], now
            since = now
        return now >= since + rest_seconds

    async def _unless_used(self, query: str, params: Mapping[str, Any]) -> None:
        """Each is one statement. Not tried again at once: others would wait behind it."""
        with suppress(Conflict):
            async with self._database.driver.transaction(query) as tx:
                await tx.run(query, params)


def _is_empty(tray: Row) -> bool:
    return not tray["ranges_bytes"] and not tray["counters_bytes"]


def _is_large(tray: Row, most_bytes: int) -> bool:
    counters_bytes = tray["counters_bytes"] * _COUNTERS_SHARE
    return bool(max(tray["ranges_bytes"], counters_bytes) > most_bytes)
