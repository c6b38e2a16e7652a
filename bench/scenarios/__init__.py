"""The scenarios, by the names that `python -m bench` takes."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

from bench.report import Result
from bench.scenarios import (
    beside,
    enqueue,
    exports,
    fleet,
    growth,
    held,
    ingest,
    live,
    noop,
    pages,
    partitions,
    upload,
    waiting,
    wal,
)
from bench.scenarios.ground import Ground
from holdfast.extension import installed

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
    "enqueue": enqueue.run,
    "beside": beside.run,
    "partitions": partitions.run,
}


def _of_extensions() -> dict[str, Callable[[Ground], Result]]:
    """Returns bench/NAME/scenario.py of each installed extension that has one."""
    names = [name for name in installed() if find_spec(f"bench.{name}") is not None]
    return {name: import_module(f"bench.{name}.scenario").run for name in names}


SCENARIOS |= _of_extensions()
