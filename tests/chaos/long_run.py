"""Some minutes of killing: `make chaos`, or `python -m tests.chaos.long_run postgres 20000`.

Three workers share one job; one of them is killed every second or so. Prints what must be zero,
and the longest time in which nothing was settled; ends with 1 if something was lost.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.store import open_store
from holdfast.store.migrate import upgrade
from tests.chaos.children import Children
from tests.chaos.scene import DEEDS, Scene
from tests.chaos.test_killed_workers import kill_at_random, random_deeds
from tests.postgres import PostgresServer

WORKERS = 3
ITEMS = 100_000
PATIENCE_SECONDS = 1800.0


class Watch(threading.Thread):
    """Looks at the counters all the time: how long does nothing move, and when is all done?"""

    def __init__(self, url: str, job_id: int) -> None:
        super().__init__(daemon=True)
        self._url = url
        self._job_id = job_id
        self.longest_stall = 0.0
        self.finished = threading.Event()

    def run(self) -> None:
        asyncio.run(self._watch())

    async def _watch(self) -> None:
        store = await open_store(self._url)
        settled, since = -1, time.monotonic()
        while not self.finished.is_set():
            counters = await store.reads.counters(self._job_id)
            moment = time.monotonic()
            if counters.finished != settled:
                settled, since = counters.finished, moment
            self.longest_stall = max(self.longest_stall, moment - since)
            if counters.accepted == counters.finished:
                self.finished.set()
            await asyncio.sleep(0.1)
        await store.close()


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


def chaos(kind: str, items: int) -> bool:
    """Whether everything was exact in the end."""
    chance = random.Random(items)
    with tempfile.TemporaryDirectory() as name, database(kind, Path(name)) as url:
        folder = Path(name)
        children = Children(folder)
        try:
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
            return tell(kind, scene, job_id, items, kills, seconds, watch.longest_stall)
        finally:
            children.close()


def tell(
    kind: str,
    scene: Scene,
    job_id: int,
    items: int,
    kills: int,
    seconds: float,
    stall: float,
) -> bool:
    told = scene.show(job_id)
    counters, problems = told["counters"], told["problems"]
    (saved,) = scene.fetch("select count(*), count(distinct seq) from saved")
    lost, twice = items - saved[1], saved[0] - saved[1]
    exact = not problems and counters["done"] == items and told["state"] == "DONE"
    starts = sum(scene.witnessed().values())
    print(f"{kind}: {items:,} items, {WORKERS} workers, {kills} kills in {seconds:.0f} s")
    print(f"  lost {lost}, settled twice {twice}, counters {'exact' if exact else problems}")
    print(f"  started {starts:,} times, longest stall {stall:.1f} s", flush=True)
    return exact and not lost and not twice


if __name__ == "__main__":
    kinds = [sys.argv[1]] if len(sys.argv) > 1 else ["sqlite", "postgres"]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else ITEMS
    sys.exit(0 if all(chaos(kind, count) for kind in kinds) else 1)
