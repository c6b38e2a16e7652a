"""`holdfast` in a process whose clock is wrong: CHAOS_CLOCK_SECONDS ahead of the world."""

from __future__ import annotations

import os
import sys
import time
from datetime import UTC, datetime, timedelta

from holdfast import clock
from holdfast.cli.main import main


def start_wrongly(arguments: list[str]) -> None:
    ahead = timedelta(seconds=float(os.environ["CHAOS_CLOCK_SECONDS"]))
    clock.SystemClock.now = lambda _: datetime.now(UTC) + ahead  # type: ignore[method-assign]
    real = time.time
    time.time = lambda: real() + ahead.total_seconds()
    sys.argv = ["holdfast", *arguments]
    main()
