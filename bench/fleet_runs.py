"""Runs a fleet as a user does: `holdfast relay` and `holdfast work`, on RabbitMQ or polling."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from bench import holdfast_runs, measure
from bench.holdfast_runs import NOOP, Postgres
from bench.measure import Rate, RunFailed, python
from bench.servers import Servers

READY_SECONDS = 60.0
DONE_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Fleet:
    """A database and the processes that work on it.

    `broker`: its settings; without any, they poll."""

    database: Postgres
    folder: Path
    broker: dict[str, str]

    @property
    def settings(self) -> dict[str, str]:
        notes = {"BENCH_NOTES": str(self.folder / "notes")}
        return holdfast_runs.settings(self.database, self.folder) | self.broker | notes

    @contextmanager
    def running(
        self, workers: int, pipeline: Path = NOOP
    ) -> Iterator[Sequence[subprocess.Popen[bytes]]]:
        """Runs the fleet, from the moment at which every worker listens or polls."""
        commands = [python("holdfast", "work", pipeline, "--processes", workers)]
        if self.broker:
            commands.append(python("holdfast", "relay"))
        with measure.processes(commands, self.folder, self.settings) as started:
            self._await(started, lambda: self.database.live_workers() == workers, READY_SECONDS)
            yield started

    def order(self, *words: object) -> None:
        """Runs a command of Holdfast, such as `resume 1`."""
        folder = self.folder / "orders"
        folder.mkdir(exist_ok=True)
        measure.run_to_end([python("holdfast", *words)], folder, self.settings)

    def await_done(self, job_id: int, started: Sequence[subprocess.Popen[bytes]]) -> None:
        self._await(started, lambda: self.database.state(job_id) == "DONE", DONE_SECONDS)

    def _await(
        self, started: Sequence[subprocess.Popen[bytes]], met: Callable[[], bool], seconds: float
    ) -> None:
        deadline = time.monotonic() + seconds
        while not met():
            if time.monotonic() > deadline or any(one.poll() is not None for one in started):
                raise RunFailed(measure.tail(self.folder))
            time.sleep(0.1)


def fresh_fleet(servers: Servers, folder: Path, messages: bool) -> Fleet:
    """Returns a fleet on an empty database; with `messages`, on its own queues."""
    name = "fleet" if messages else "polling"
    folder = folder / name
    folder.mkdir(exist_ok=True)
    database = holdfast_runs.fresh_postgres(servers, folder, name)
    broker = {
        "HOLDFAST_BROKER_URL": servers.amqp_url,
        "HOLDFAST_QUEUE_PREFIX": f"bench-{uuid4().hex[:8]}",
    }
    return Fleet(database, folder, broker if messages else {})


def ingest(fleet: Fleet, file: Path) -> int:
    """Creates a job whose rows are all stored and that waits for `resume`."""
    holdfast_runs.ingest(fleet.database, file, fleet.folder)
    job_id = fleet.database.newest_job()
    fleet.order("pause", job_id)
    fleet.database.settle_down()
    return job_id


def work(fleet: Fleet, job_id: int, workers: int) -> Rate:
    """Processes the job with processes that are all running before its first item."""
    with fleet.running(workers) as started:
        fleet.order("resume", job_id)
        fleet.await_done(job_id, started)
    items, done = fleet.database.counts(job_id)
    if done != items or not items:
        raise RunFailed(f"job {job_id}: {done} of {items} items are DONE")
    return fleet.database.rate(job_id)
