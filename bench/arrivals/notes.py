"""Reads when records were committed and when they were begun: lines of a number and a moment."""

from __future__ import annotations

import os
import time
from pathlib import Path

#: One clock for all processes of the machine.
now = time.monotonic


def begun(number: int) -> None:
    with open(os.environ["BENCH_NOTES"], "a") as notes:
        notes.write(f"{number} {now()}\n")


def read(path: Path) -> dict[int, float]:
    """Returns the first moment of each number."""
    moments: dict[int, float] = {}
    if path.exists():
        for line in path.read_text().splitlines():
            number, _, moment = line.partition(" ")
            if moment:
                moments.setdefault(int(number), float(moment))
    return moments
