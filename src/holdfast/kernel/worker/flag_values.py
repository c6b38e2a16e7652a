"""Reads flags for a process: cached for a moment, so that a change takes effect within seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from holdfast.clock import Clock
from holdfast.errors import DatabaseGone, GateWait, PipelineError
from holdfast.flags import FlagValue, ServedFlag
from holdfast.kernel import Store

_FRESH_SECONDS = 2.0
_DATABASE_SECONDS = 5.0


class FlagValues:
    def __init__(self, store: Store, served: Mapping[str, ServedFlag], clock: Clock) -> None:
        self._flags = store.flags
        self._served = served
        self._clock = clock
        self._stored: Mapping[str, Any] | None = None
        self._stale_at = 0.0
        self._reading = asyncio.Lock()

    async def get(self, name: str) -> FlagValue:
        served = self._served.get(name)
        if served is None:
            known = ", ".join(sorted(self._served))
            raise PipelineError(f"there is no flag {name!r}", f"Flags: {known}.")
        return served.value((await self._fresh()).get(name))

    async def _fresh(self) -> Mapping[str, Any]:
        """Returns the current values; while the database is gone, the last known ones."""
        async with self._reading:
            if self._stored is None or self._clock.monotonic() >= self._stale_at:
                try:
                    rows = await self._flags.all()
                    self._stored = {name: row["value"] for name, row in rows.items()}
                except DatabaseGone as gone:
                    if self._stored is None:
                        raise GateWait("database", _DATABASE_SECONDS, str(gone)) from gone
                self._stale_at = self._clock.monotonic() + _FRESH_SECONDS
            return self._stored
