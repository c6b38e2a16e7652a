"""The scenarios, by the names that `python -m bench` takes."""

from __future__ import annotations

from collections.abc import Callable

from bench.report import Result
from bench.scenarios import (
    exports,
    fleet,
    growth,
    held,
    ingest,
    live,
    meetings,
    noop,
    pages,
    upload,
    waiting,
    wal,
)
from bench.scenarios.ground import Ground

SCENARIOS: dict[str, Callable[[Ground], Result]] = {
    "noop": noop.run,
    "waiting": waiting.run,
    "ingest": ingest.run,
    "growth": growth.run,
    "wal": wal.run,
    "fleet": fleet.run,
    "held": held.run,
    "pages": pages.run,
    "exports": exports.run,
    "upload": upload.run,
    "live": live.run,
    "meetings": meetings.run,
}
