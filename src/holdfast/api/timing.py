"""How long pages of large lists take, and where they stood: measured, and logged when slow."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from holdfast.api.dependencies import Parts

_SLOW_SECONDS = 0.25


@asynccontextmanager
async def timed_page(parts: Parts, list_name: str, position: Any) -> AsyncIterator[None]:
    started = parts.clock.monotonic()
    yield
    seconds = parts.clock.monotonic() - started
    parts.metrics.page_seconds.labels(list_name).observe(seconds)
    if seconds >= _SLOW_SECONDS:
        parts.log.warning("page.slow", list=list_name, after=position, seconds=seconds)
