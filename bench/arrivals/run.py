"""Runs one contender: its database, its workers, and the results for the records that were
added."""

from __future__ import annotations

import math
import os
import signal
import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from bench.arrivals import notes
from bench.measure import ROOT, RunFailed, environment, processes, python, run_to_end, tail
from bench.servers import Servers

HOLDFAST = "holdfast"
PIPELINE = ROOT / "bench" / "arrivals" / "holdfast.py"
WORKERS = 2
PATIENCE_SECONDS = 60.0
_READY_SECONDS = 3.0  # after the first record was begun: the other worker listens too


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds from the commit to the start."""

    p50: float
    p99: float
    largest: float


@dataclass(slots=True)
class Contender:
    name: str
    url: str
    folder: Path
    workers: int = WORKERS
    also: tuple[Path, ...] = ()  # pipelines that Holdfast's workers process besides
    extra: dict[str, str] = field(default_factory=dict)
    runs: int = 0
    committed: Path = field(init=False)
    begun: Path = field(init=False)

    def settings(self) -> dict[str, str]:
        return {
            "BENCH_DSN": self.url,
            "BENCH_NOTES": str(self.begun),
            "BENCH_COMMITS": str(self.committed),
            "HOLDFAST_DATABASE_URL": self.url,
            "HOLDFAST_DATA_DIR": str(self.folder),
            "HOLDFAST_LOG_LEVEL": "warning",
            **self.extra,
        }

    def next_run(self) -> None:
        self.runs += 1
        self.committed = self.folder / f"committed-{self.runs}"
        self.begun = self.folder / f"begun-{self.runs}"

    @contextmanager
    def working(self) -> Iterator[list[subprocess.Popen[bytes]]]:
        """Runs its workers, ready: a first record was begun."""
        self.next_run()
        with processes([self._work()] * self.workers, self.folder, self.settings()) as workers:
            self.produce(5, 0.2, 1)
            self._await(1)
            time.sleep(_READY_SECONDS)
            self.committed.unlink()
            self.begun.write_text("")
            yield workers

    def produce(self, rate: float, seconds: float, connections: int) -> None:
        run_to_end([self._produce(rate, seconds, connections)], self.folder, self.settings())

    @contextmanager
    def producing(self, rate: float, seconds: float) -> Iterator[None]:
        """Adds records beside what is done in the block; at the end all were begun."""
        command = self._produce(rate, seconds, 2)
        with subprocess.Popen(command, cwd=ROOT, env=environment(self.settings())) as process:
            yield
            if process.wait():
                raise RunFailed(f"{self.name} could not add its records")
        self.finish()

    def finish(self) -> None:
        self._await(len(notes.read(self.committed)))

    def latency(self, since: float = 0.0, until: float = math.inf) -> Latency:
        committed, begun = notes.read(self.committed), notes.read(self.begun)
        waits = sorted(
            max(0.0, begun[number] - at) * 1000
            for number, at in committed.items()
            if since < at <= until and number in begun
        )
        if len(waits) < 2:
            raise RunFailed("too few records")
        cuts = statistics.quantiles(waits, n=100, method="inclusive")
        return Latency(cuts[49], cuts[98], waits[-1])

    def rate(self) -> float:
        """Returns records per second from the first commit to the last start."""
        committed, begun = notes.read(self.committed), notes.read(self.begun)
        return len(begun) / (max(begun.values()) - min(committed.values()))

    def number(self, sql: str) -> float:
        with psycopg.connect(self.url, autocommit=True) as connection:
            row = connection.execute(sql).fetchone()  # type: ignore[call-overload]
            return float(row[0])

    def _await(self, count: int) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(notes.read(self.begun)) < count:
            if time.monotonic() > deadline:
                raise RunFailed(f"{self.name} did not begin all records: {tail(self.folder)}")
            time.sleep(0.02)

    def _work(self) -> list[str]:
        if self.name == HOLDFAST:
            return ["holdfast", "work", str(PIPELINE), *map(str, self.also)]
        return python("bench.arrivals", "work", self.name)

    def _produce(self, rate: float, seconds: float, connections: int) -> list[str]:
        return python("bench.arrivals", "produce", self.name, rate, seconds, connections)


def fresh(servers: Servers, folder: Path, name: str) -> Contender:
    place = folder / f"arrivals-{name}"
    place.mkdir(exist_ok=True)
    contender = Contender(name, servers.fresh_database(f"arrivals_{name}"), place)
    contender.next_run()
    setup = (
        ["holdfast", "open", str(PIPELINE)]
        if name == HOLDFAST
        else python("bench.arrivals", "install", name)
    )
    run_to_end([setup], place, contender.settings())
    return contender


def kill(worker: subprocess.Popen[bytes]) -> float:
    """Kills a worker; returns the moment."""
    os.killpg(worker.pid, signal.SIGKILL)
    return notes.now()
