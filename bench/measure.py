"""Measures rates in the steady state, and watches processes from outside.

Start-up and wind-down never count: a rate runs from the first completion to the last one. Peers
mark each finished item with one byte in a file, which costs them about a microsecond and works
across forks, threads and event loops; a table's rows have their own times.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import psutil
import psycopg

ROOT = Path(__file__).parent.parent
SAMPLE_SECONDS = 0.1  # looking through the process table costs some milliseconds of a core


class RunFailed(Exception):
    """A contender did not finish its run; the message contains the end of its output."""


@dataclass(frozen=True, slots=True)
class Rate:
    items: int
    seconds: float

    @property
    def per_second(self) -> float:
        return self.items / self.seconds if self.seconds else 0.0


@dataclass(slots=True)
class Watch:
    """What a group of processes used while it ran, sampled from outside."""

    seconds: float = 0.0
    peak_bytes: int = 0
    samples: list[tuple[float, float]] = field(default_factory=list)

    def busy_cores(self) -> float:
        """Returns the cores in use over the middle half of the run, in which nothing starts or
        ends."""
        middle = self.samples[len(self.samples) // 4 : len(self.samples) * 3 // 4 + 1]
        if len(middle) < 2:
            return 0.0
        (start, used_before), (end, used_after) = middle[0], middle[-1]
        return (used_after - used_before) / (end - start)


def python(module: str, *arguments: object) -> list[str]:
    return [sys.executable, "-m", module, *(str(argument) for argument in arguments)]


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PATH": path} | dict(extra or {})


@contextmanager
def processes(
    commands: Sequence[Sequence[str]], folder: Path, extra: Mapping[str, str] | None = None
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Starts them together, each in its own session, and ends exactly these."""
    with (folder / "run.log").open("wb") as log:
        started = [
            subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment(extra),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            for command in commands
        ]
    try:
        yield started
    finally:
        for process in started:
            process.terminate()
        for process in started:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def run_to_end(
    commands: Sequence[Sequence[str]],
    folder: Path,
    extra: Mapping[str, str] | None = None,
    timeout_seconds: float = 900,
) -> Watch:
    """Runs the commands side by side until all have ended by themselves."""
    watch, start = Watch(), time.perf_counter()
    with processes(commands, folder, extra) as started:
        while any(process.poll() is None for process in started):
            watch.seconds = time.perf_counter() - start
            if watch.seconds > timeout_seconds:
                raise RunFailed(f"{commands[0]} did not end in {timeout_seconds:.0f} s")
            if watch.seconds > len(watch.samples) * SAMPLE_SECONDS:
                _sample(watch, started)
            time.sleep(0.005)
        watch.seconds = time.perf_counter() - start
        if any(process.returncode for process in started):
            raise RunFailed(tail(folder))
    return watch


def _sample(watch: Watch, started: Sequence[subprocess.Popen[bytes] | psutil.Process]) -> None:
    resident, used = 0, 0.0
    for process in started:
        try:
            parent = psutil.Process(process.pid)
            for member in (parent, *parent.children(recursive=True)):
                times = member.cpu_times()
                used += times.user + times.system
                resident += member.memory_info().rss
        except psutil.Error:
            continue
    watch.peak_bytes = max(watch.peak_bytes, resident)
    watch.samples.append((time.perf_counter(), used))


@contextmanager
def watching(process: psutil.Process) -> Iterator[Watch]:
    """Measures the most memory that a running process and its children hold until the end of the
    block."""
    watch, ended = Watch(), threading.Event()

    def sample() -> None:
        while not ended.wait(SAMPLE_SECONDS / 2):
            _sample(watch, [process])

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield watch
    finally:
        ended.set()
        thread.join()


def tail(folder: Path) -> str:
    lines = (folder / "run.log").read_text(errors="replace").splitlines()
    return "\n".join(lines[-4:])


def marked_rate(
    path: Path, expected: int, started: Sequence[subprocess.Popen[bytes]], timeout_seconds: float
) -> Rate:
    """Returns the rate at which marks were added, from the first seen to the last expected one."""
    deadline = time.perf_counter() + timeout_seconds
    first: tuple[float, int] | None = None
    while True:
        now, count = time.perf_counter(), path.stat().st_size
        if count and first is None:
            first = now, count
        if first and count >= expected:
            return Rate(count - first[1], now - first[0])
        if now > deadline or all(process.poll() is not None for process in started):
            raise RunFailed(f"{count} of {expected} items were done. {tail(path.parent)}")
        time.sleep(0.002)


def postgres_rate(dsn: str, table: str, where: str = "true") -> Rate:
    """Returns the rate at which a table's rows were written, by their `updated_at`."""
    with psycopg.connect(dsn) as connection:
        ends = connection.execute(
            f"select min(updated_at), max(updated_at) from {table} where {where}"
        ).fetchone()
        if ends is None or ends[0] is None:
            return Rate(0, 0.0)
        later = connection.execute(
            f"select count(*) from {table} where ({where}) and updated_at > %s", ends[:1]
        ).fetchone()
    return Rate(later[0] if later else 0, (ends[1] - ends[0]).total_seconds())


def sqlite_rate(path: Path, table: str, where: str = "true") -> Rate:
    with closing(sqlite3.connect(path)) as connection:
        first, last = connection.execute(
            f"select min(updated_at), max(updated_at) from {table} where {where}"
        ).fetchone()
        (count,) = connection.execute(
            f"select count(*) from {table} where ({where}) and updated_at > ?", (first,)
        ).fetchone()
    seconds = (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()
    return Rate(count, seconds)
