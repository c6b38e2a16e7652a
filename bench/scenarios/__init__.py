"""The scenarios, by the names that `python -m bench` takes."""

from __future__ import annotations

from collections.abc import Callable

from bench.report import Result
from bench.scenarios import fleet, growth, held, ingest, meetings, noop, waiting, wal
from bench.scenarios.ground import Ground

SCENARIOS: dict[str, Callable[[Ground], Result]] = {
    "noop": noop.run,
    "waiting": waiting.run,
    "ingest": ingest.run,
    "growth": growth.run,
    "wal": wal.run,
    "fleet": fleet.run,
    "held": held.run,
    "meetings": meetings.run,
}
