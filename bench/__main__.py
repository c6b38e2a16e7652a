"""`python -m bench [--quick] [scenario ...]`: measures, prints, and writes bench/results/."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
from datetime import datetime
from pathlib import Path

import psutil
from rich.console import Console

from bench import report, servers
from bench.scenarios import SCENARIOS
from bench.scenarios.ground import FULL, QUICK, Ground


def main() -> int:
    arguments = _arguments()
    # SIGTERM unwinds like an exception, so that every server started here is stopped again.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    console = Console(width=None if sys.stdout.isatty() else 120)
    at, busy_percent = datetime.now().astimezone(), psutil.cpu_percent(2.0)
    console.print(
        f"{os.cpu_count()} cores, {busy_percent:.0f} % busy before the start", highlight=False
    )
    results = _run(console, arguments.scenarios or list(SCENARIOS), arguments.quick, arguments.only)
    report.show_targets(console, results)
    path = report.write(results, at, busy_percent, arguments.quick)
    console.print(f"Written to {os.path.relpath(path)}")
    return 1 if any(result.failures for result in results) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("scenarios", nargs="*", metavar="scenario", help=", ".join(SCENARIOS))
    parser.add_argument("--quick", action="store_true", help="small sizes: a check, no figures")
    only = "of `beside`, measure only the cells whose name has these words; can be repeated"
    parser.add_argument("--only", metavar="WORDS", action="append", default=[], help=only)
    arguments = parser.parse_args()
    unknown = [name for name in arguments.scenarios if name not in SCENARIOS]
    if unknown:
        parser.error(f"no scenario {unknown[0]!r}; there are {', '.join(SCENARIOS)}")
    return arguments


def _run(console: Console, names: list[str], quick: bool, only: list[str]) -> list[report.Result]:
    progress = Console(stderr=True)
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    try:
        with servers.running(folder) as started:
            ground = Ground(
                started,
                folder,
                QUICK if quick else FULL,
                lambda what: progress.print(what, style="dim", highlight=False),
                only,
            )
            results = []
            for name in names:
                results.append(SCENARIOS[name](ground))
                report.show(console, results[-1])
            return results
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
