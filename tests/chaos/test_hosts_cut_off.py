"""Several hosts, one of which is cut off for longer than its leases and healed."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from holdfast.store.migrate import upgrade
from tests.chaos.children import Children
from tests.chaos.scene import DEEDS, Scene, wait_until
from tests.fleet import broker_settings
from tests.hosts import HOSTS_MISSING, Host, can_make_hosts, hosts
from tests.postgres import PostgresServer
from tests.rabbitmq import RabbitServer

ITEMS = 1500
FEW_AT_ONCE = {"HOLDFAST_CONCURRENCY_MAX": "4"}


class WorkerHost:
    """`holdfast worker` on a host of its own."""

    def __init__(self, host: Host, scene: Scene, folder: Path) -> None:
        self.host = host
        far = {
            name: value.replace("127.0.0.1", host.server_address)
            for name, value in scene.environment(FEW_AT_ONCE).items()
            if name in ("HOLDFAST_DATABASE_URL", "HOLDFAST_BROKER_URL")
        }
        command = [sys.executable, "-P", "-m", "holdfast", "worker", str(DEEDS), "--processes", "2"]
        with (folder / f"{host.name}.txt").open("ab") as output:
            self._process = subprocess.Popen(
                host.command(*command),
                env=scene.environment({**FEW_AT_ONCE, **far}),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        self._scene = scene

    def workers(self) -> set[int]:
        """The process ids that items of this host tell."""
        family = psutil.Process(self._process.pid).children(recursive=True)
        return {member.pid for member in family}

    def has_worked_on(self, job_id: int) -> bool:
        mine = self.workers()
        return any(result["pid"] in mine for result in self._scene.results(job_id).values())

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextmanager
def worker_hosts(pair: list[Host], scene: Scene, folder: Path) -> Iterator[list[WorkerHost]]:
    running = [WorkerHost(host, scene, folder) for host in pair]
    try:
        yield running
    finally:
        for one in running:
            one.stop()


@pytest.mark.postgres
@pytest.mark.rabbit
@pytest.mark.slow
def test_host_that_is_cut_off_and_healed_costs_no_item_and_settles_none_twice(
    tmp_path: Path, children: Children
) -> None:
    if not can_make_hosts():
        pytest.fail(HOSTS_MISSING, pytrace=False)
    with hosts(2) as pair:
        addresses = [host.server_address for host in pair]
        with PostgresServer(addresses=addresses) as postgres, RabbitServer(addresses) as rabbit:
            url = postgres.create_database()
            upgrade(url)
            scene = Scene(url, tmp_path, children, broker_settings(rabbit.url))
            scene.start("relay")
            job_id = scene.take_in(["sleep:0.05"] * ITEMS, "saving")
            with worker_hosts(pair, scene, tmp_path) as (cut, other):
                for one in (cut, other):
                    wait_until(lambda o=one: o.has_worked_on(job_id), "both hosts work")
                cut.host.cut_off()
                _wait_until_leases_moved(scene, cut)
                scene.wait_for_starts(300)
                cut.host.heal()
                _wait_until_done(scene, job_id)
                again = scene.take_in(["sleep:0.1"] * 400)
                wait_until(lambda: cut.has_worked_on(again), "the healed host works again")
                _wait_until_done(scene, again)
            scene.assert_exact(job_id, done=ITEMS)
            scene.assert_exact(again, done=400)
            scene.assert_saved_once(ITEMS)
            assert scene.dead_items() == []


def _wait_until_leases_moved(scene: Scene, cut: WorkerHost) -> None:
    """What the host held when it was cut off has run out, and another has taken it over."""
    held = (
        "select count(*) from ranges r join workers w on w.name = r.worker where w.pid in "
        f"({','.join(map(str, cut.workers()))})"
    )
    wait_until(lambda: scene.fetch(held)[0][0] == 0, "others take over what the host held")


def _wait_until_done(scene: Scene, job_id: int) -> None:
    state = f"select state from jobs where id = {job_id}"
    wait_until(lambda: scene.fetch(state)[0][0] == "DONE", "the job is done", 120)
