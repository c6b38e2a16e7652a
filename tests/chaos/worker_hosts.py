"""Workers on several hosts, of which one is cut off and healed.

No item ends before the test lets it: what a host has begun when it is cut off is not settled.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from holdfast.kernel.database.migrate import upgrade
from tests.chaos.children import Children
from tests.chaos.scene import DEEDS, Scene, wait_until
from tests.fleet import broker_settings
from tests.hosts import HOSTS_MISSING, Host, can_make_hosts, hosts
from tests.postgres import PostgresServer
from tests.rabbitmq import RabbitServer

#: More than all workers begin while they wait: a few at once, and one more with each slice.
ITEMS = 400
FEW_AT_ONCE = {
    "HOLDFAST_CONCURRENCY_MAX": "4",
    "HOLDFAST_CLAIM_MAX": "4",
    "HOLDFAST_WORKER_TARGET_SLICE_MS": "1000",
}


class WorkerHost:
    """`holdfast work` on a host of its own."""

    def __init__(self, host: Host, scene: Scene, folder: Path) -> None:
        self.host = host
        self._scene = scene
        self._output = folder / f"{host.name}.txt"
        far = {
            name: value.replace("127.0.0.1", host.server_address)
            for name, value in scene.environment({}).items()
            if name in ("HOLDFAST_DATABASE_URL", "HOLDFAST_BROKER_URL")
        }
        command = [sys.executable, "-P", "-m", "holdfast", "work", str(DEEDS), "--processes", "2"]
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                host.command(*command),
                env=scene.environment({**FEW_AT_ONCE, **far}),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def pids(self) -> set[int]:
        """The process ids that items of this host report."""
        family = psutil.Process(self._process.pid).children(recursive=True)
        return {member.pid for member in family}

    def begun(self) -> int:
        """How many items it has begun so far."""
        mine = self.pids()
        return sum(pid in mine for pid in self._scene.witnesses())

    def wait_until_it_says(self, event: str) -> None:
        wait_until(lambda: event in self._output.read_text(), f"{self.host.name} says {event}")

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextmanager
def _worker_hosts(pair: list[Host], scene: Scene, folder: Path) -> Iterator[list[WorkerHost]]:
    running = [WorkerHost(host, scene, folder) for host in pair]
    try:
        yield running
    finally:
        for one in running:
            one.stop()


@contextmanager
def hosts_at_work(
    folder: Path, children: Children
) -> Iterator[tuple[Scene, WorkerHost, WorkerHost]]:
    """Two hosts with workers, beside the one of database, broker and relay."""
    if not can_make_hosts():
        pytest.fail(HOSTS_MISSING, pytrace=False)
    with hosts(2) as pair:
        addresses = [host.server_address for host in pair]
        with PostgresServer(addresses=addresses) as postgres, RabbitServer(addresses) as rabbit:
            url = postgres.create_database()
            upgrade(url)
            scene = Scene(url, folder, children, broker_settings(rabbit.url))
            scene.start("relay")
            with _worker_hosts(pair, scene, folder) as (first, second):
                yield scene, first, second


def cut_off_at_work(scene: Scene, cut: WorkerHost, other: WorkerHost) -> int:
    """A host is cut off in the middle of items; the other takes them over, and does them all."""
    may_end = scene.folder / "first-may-end"
    job_id = scene.take_in([f"await:{may_end}"] * ITEMS, "saving")
    for one in (cut, other):
        wait_until(lambda o=one: o.begun() > 0, "both hosts work")
    cut.host.cut_off()
    may_end.touch()
    _wait_until_done(scene, job_id)
    assert {result["pid"] for result in scene.results(job_id).values()} <= other.pids()
    return job_id


def heal_and_work_again(scene: Scene, cut: WorkerHost) -> None:
    """The host learns what it lost, and works with the other."""
    cut.host.heal()
    cut.wait_until_it_says("lease.lost")
    may_end = scene.folder / "second-may-end"
    before = cut.begun()
    job_id = scene.take_in([f"await:{may_end}"] * ITEMS)
    wait_until(lambda: cut.begun() > before, "the healed host works again")
    may_end.touch()
    _wait_until_done(scene, job_id)
    scene.assert_exact(job_id, done=ITEMS)


def assert_nothing_lost_or_doubled(scene: Scene, job_id: int) -> None:
    scene.assert_exact(job_id, done=ITEMS)
    scene.assert_saved_once(ITEMS)
    assert scene.dead_items() == []


def _wait_until_done(scene: Scene, job_id: int) -> None:
    state = f"select state from jobs where id = {job_id}"
    wait_until(lambda: scene.fetch(state)[0][0] == "DONE", "the job is done", 120)
