"""Pages of items for grids and lists: timed, searched by value, with a summary of each input."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from holdfast.clock import Clock
from holdfast.columns import NAMES
from holdfast.features.items.items import ItemFilter, ItemPage, Position
from holdfast.features.items.value_search import Searched, Value, search
from holdfast.model import Job
from holdfast.observe.metrics import Metrics

if TYPE_CHECKING:
    from holdfast.features.console import Console

_SLOW_SECONDS = 0.25
_COUNT_SECONDS = 30.0
_MOST_COUNTS = 1000
_SUMMARY_CHARACTERS = 120
_SUMMARY_SOURCE_CHARACTERS = 2_000
#: A text that is cut off counts as one: starting again at each of its quotation marks would take
#: quadratic time.
_TEXT = re.compile(r'"((?:[^"\\]|\\[\s\S])*)(?:"\s*(:)?|\\?\Z)')


@dataclass(frozen=True, slots=True)
class PendingScope:
    """Which pending items are meant: of one owner or all owners (None), of a pipeline, of a job."""

    owner: str | None
    pipeline: str | None = None
    job_id: int | None = None


class ItemLists:
    def __init__(self, console: Console, clock: Clock, metrics: Metrics, log: Any) -> None:
        self._console = console
        self._clock = clock
        self._metrics = metrics
        self._log = log
        self._counts: dict[PendingScope, tuple[float, int]] = {}  # when it was read, and the count

    async def page(
        self,
        job: Job,
        filter: ItemFilter,
        values: Sequence[Value],
        position: Position | None,
        limit: int,
    ) -> Searched:
        if values:
            async with self._timed("search", position):
                return await search(self._console, job, filter, values, position, limit)
        async with self._timed("items", position):
            page = await self._console.items.page(job, filter, position, limit)
        return Searched(page.items, page.next, len(page.items))

    async def pending(
        self, scope: PendingScope, filter: ItemFilter, position: Position | None, limit: int
    ) -> ItemPage:
        """Lists pending items, the longest waiting first."""
        items = self._console.items
        async with self._timed("pending", position):
            if scope.job_id is None:
                return await items.pending(scope.owner, scope.pipeline, filter, position, limit)
            job = await self._console.jobs.job(scope.job_id, scope.owner)
            return await items.page(job, filter, position, limit)

    async def pending_count(self, scope: PendingScope) -> int:
        """Counts pending items, at most twice a minute; all pages that show the count share it."""
        now = self._clock.monotonic()
        known = self._counts.get(scope)
        if known is not None and now < known[0] + _COUNT_SECONDS:
            return known[1]
        count = await self._console.items.pending_count(
            scope.owner, scope.pipeline, scope.job_id or 0
        )
        if len(self._counts) >= _MOST_COUNTS:
            self._counts.clear()
        self._counts[scope] = (now, count)
        return count

    async def measure_pending(self) -> None:
        """Updates the metric, which has to be right even if no one looks at the page."""
        self._metrics.pending_items.set(await self._console.items.pending_count(None, None, 0))

    @asynccontextmanager
    async def _timed(self, list_name: str, position: Any) -> AsyncIterator[None]:
        """Measures how long a page takes, and logs it if it is slow."""
        started = self._clock.monotonic()
        yield
        seconds = self._clock.monotonic() - started
        self._metrics.page_seconds.labels(list_name).observe(seconds)
        if seconds >= _SLOW_SECONDS:
            self._log.warning("page.slow", list=list_name, after=position, seconds=seconds)


def summary(text: str) -> str:
    """Returns the first values of an input in one line; of a long input, only its beginning is
    used."""
    try:
        record = orjson.loads(text)
    except orjson.JSONDecodeError:
        texts = _TEXT.findall(text[:_SUMMARY_SOURCE_CHARACTERS])
        values: list[Any] = [value for value, colon in texts if not colon]
    else:
        values = [record]
        if isinstance(record, dict):
            values = [value for name, value in record.items() if name != NAMES]
    words = ", ".join(" ".join(str(value).split()) for value in values if value not in (None, ""))
    short = len(words) <= _SUMMARY_CHARACTERS
    return words if short else words[: _SUMMARY_CHARACTERS - 1] + "…"
