"""Some minutes of failures: `make chaos`, or `python -m tests.chaos.long_run fleet 20000`.

On one database, three workers share one job, and one of them is killed every second or so. In a
fleet, everything fails: see fleet_chaos. Prints what must be zero, and the longest time in which
nothing was settled; ends with 1 if something was lost.
"""

from __future__ import annotations

import asyncio
import logging
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.kernel.database.migrate import upgrade
from tests.chaos import fleet_chaos
from tests.chaos.children import Children
from tests.chaos.fleet_chaos import FleetChaos, Pace
from tests.chaos.scene import DEEDS, Scene
from tests.chaos.test_killed_workers import kill_at_random, random_deeds
from tests.chaos.watch import Watch
from tests.postgres import PostgresServer

WORKERS = 3
ITEMS = {"sqlite": 100_000, "postgres": 100_000, "fleet": 50_000}
PATIENCE_SECONDS = 1800.0


@contextmanager
def database(kind: str, folder: Path) -> Iterator[str]:
    if kind == "postgres":
        with PostgresServer(durable=True) as server:
            url = server.create_database()
            upgrade(url)
            yield url
    else:
        url = f"sqlite:///{folder / 'holdfast.db'}"
        upgrade(url)
        yield url


@contextmanager
def stage() -> Iterator[tuple[Path, Children]]:
    with tempfile.TemporaryDirectory() as name:
        children = Children(Path(name))
        try:
            yield Path(name), children
        finally:
            children.close()


def killed_workers(kind: str, items: int) -> bool:
    """Whether everything was exact in the end."""
    chance = random.Random(items)
    with stage() as (folder, children), database(kind, folder) as url:
        scene = Scene(url, folder, children)
        job_id = scene.take_in(random_deeds(chance, items), "saving")
        watch = Watch(url, job_id)
        watch.start()
        started, kills = time.monotonic(), 0
        while not watch.finished.is_set():
            kills += kill_at_random(scene, job_id, chance, workers=WORKERS, seconds=5)
            assert time.monotonic() - started < PATIENCE_SECONDS, "the job does not end"
        seconds = time.monotonic() - started
        watch.join()
        scene.run("work", DEEDS, "--job", str(job_id), "--until-idle")
        print(f"{kind}: {items:,} items, {WORKERS} workers, {kills} kills in {seconds:.0f} s")
        return tell(scene, job_id, items, f"longest stall {watch.longest_stall:.1f} s")


def failing_fleet(items: int) -> bool:
    chance = random.Random(items)
    with stage() as (folder, children):
        chaos = FleetChaos(folder, chance, Pace(), durable=True)
        with chaos.servers() as url:
            started = time.monotonic()
            deeds = random_deeds(chance, items)
            watch = asyncio.run(chaos.run(url, deeds, children, PATIENCE_SECONDS))
            seconds = time.monotonic() - started
            troubles = ", ".join(f"{count} {name}" for name, count in sorted(chaos.counts.items()))
            print(
                f"fleet: {items:,} items, {fleet_chaos.WORKERS} workers (the clock of one wrong by "
                f"{fleet_chaos.CLOCK_SECONDS} s), relay and timers: {troubles} in {seconds:.0f} s"
            )
            stall = (
                f"longest stall {watch.longest_stall:.1f} s, "
                f"with both servers up {watch.longest_stall_with_all_up:.1f} s"
            )
            return tell(Scene(url, folder, children), 1, items, stall)


def tell(scene: Scene, job_id: int, items: int, stall: str) -> bool:
    told = scene.show(job_id)
    counters, problems = told["counters"], told["problems"]
    (saved,) = scene.fetch("select count(*), count(distinct seq) from saved")
    lost, twice = items - saved[1], saved[0] - saved[1]
    exact = not problems and counters["done"] == items and told["state"] == "DONE"
    starts = sum(scene.witnessed().values())
    print(f"  lost {lost}, settled twice {twice}, counters {'exact' if exact else problems}")
    print(f"  started {starts:,} times, {stall}", flush=True)
    return exact and not lost and not twice


def chaos(kind: str, items: int) -> bool:
    return failing_fleet(items) if kind == "fleet" else killed_workers(kind, items)


if __name__ == "__main__":
    # The watch's own connections are cut too; it looks again.
    logging.getLogger("asyncpg").setLevel(logging.CRITICAL)
    kinds = [sys.argv[1]] if len(sys.argv) > 1 else list(ITEMS)
    count = int(sys.argv[2]) if len(sys.argv) > 2 else None
    exact = [chaos(kind, count or ITEMS[kind]) for kind in kinds]
    sys.exit(0 if all(exact) else 1)
