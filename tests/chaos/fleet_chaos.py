"""Everything that a fleet is made of fails, again and again, at the same time."""

from __future__ import annotations

import asyncio
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.kernel.database.migrate import upgrade
from tests.chaos.children import Child, Children
from tests.chaos.scene import DEEDS, Scene, wait_until
from tests.chaos.watch import Watch
from tests.chaos.wrong_clock import start_wrongly
from tests.fleet import broker_settings
from tests.postgres import PostgresServer
from tests.proxy import Proxy
from tests.rabbitmq import RabbitServer

WORKERS = 3
CLOCK_SECONDS = "600"
#: HASTE has leases of one second.
FROZEN_SECONDS = 2.5
STALL_SECONDS = 1.5
AWAY_SECONDS = 2.0


#: What a process says when it is at work; workers log it.
_AT_WORK = {"relay": "Relaying.", "timers": "Running timers."}


@dataclass(frozen=True, slots=True)
class Pace:
    """Each trouble comes at random, after twice these seconds at the latest."""

    kill: float = 0.8
    freeze: float = 6.0
    cut: float = 2.0
    postgres: float = 5.0
    rabbit: float = 25.0
    #: and not before this many items were settled since the last time
    items: int = 50


class Crew:
    """The processes, kept running as a service manager does."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._starts: dict[str, Callable[[], Child]] = {
            "relay": lambda: scene.start("relay"),
            "timers": lambda: scene.start("timers", DEEDS),
            "wrong clock": self._start_with_wrong_clock,
        }
        for number in range(1, WORKERS):
            self._starts[f"worker {number}"] = lambda: scene.start("work", DEEDS)
        self.running = {role: start() for role, start in self._starts.items()}

    def at_work(self, *, workers_only: bool = False) -> list[Child]:
        """Those that have come so far as to do their work: to kill them before that, on a machine
        that is slow, would only show that nothing is done without workers."""
        return [
            child
            for role, child in self.running.items()
            if _AT_WORK.get(role, "worker.started") in child.said()
            and not (workers_only and role in _AT_WORK)
        ]

    def tend(self) -> None:
        for role, child in self.running.items():
            if child.returncode is not None:
                self.running[role] = self._starts[role]()

    def _start_with_wrong_clock(self) -> Child:
        wrong = self._scene.environment({"CHAOS_CLOCK_SECONDS": CLOCK_SECONDS})
        return self._scene.children.call(start_wrongly, ["work", str(DEEDS)], env=wrong)


class FleetChaos:
    """One run of it. `counts` says how often each fault occurred."""

    def __init__(self, folder: Path, chance: random.Random, pace: Pace, durable: bool) -> None:
        self._folder = folder
        self._chance = chance
        self._pace = pace
        self._postgres = PostgresServer(durable=durable)
        self._rabbit = RabbitServer()
        self._over = asyncio.Event()
        self.counts: Counter[str] = Counter()

    @contextmanager
    def servers(self) -> Iterator[str]:
        with self._postgres, self._rabbit:
            url = self._postgres.create_database()
            upgrade(url)
            yield url

    def all_is_up(self) -> bool:
        return self._postgres.running and self._rabbit.running

    async def run(self, url: str, deeds: list[str], children: Children, patience: float) -> Watch:
        """Until every item is settled and the job is DONE, or the patience is at its end."""
        direct = Scene(url, self._folder, children)
        async with Proxy(url) as database, Proxy(self._rabbit.url) as broker:
            settings = {**broker_settings(broker.url), "HOLDFAST_LOG_LEVEL": "info"}
            scene = Scene(database.url, self._folder, children, settings)
            job_id = await asyncio.to_thread(scene.take_in, deeds, "saving")
            watch = Watch(url, job_id, self.all_is_up)
            crew = Crew(scene)
            watch.start()
            troubles = [
                asyncio.create_task(trouble)
                for trouble in self._troubles(watch, crew, [database, broker])
            ]
            tending = asyncio.create_task(self._tend(crew))
            in_time = await asyncio.to_thread(watch.finished.wait, patience)
            self._over.set()
            await asyncio.gather(*troubles)
            assert in_time, f"{watch.settled} of {len(deeds)} items are settled: {self.counts}"
            await asyncio.to_thread(_wait_until_done, direct, job_id)
            tending.cancel()
            for child in crew.running.values():
                child.send_signal(signal.SIGKILL)
        watch.join()
        return watch

    async def _tend(self, crew: Crew) -> None:
        while True:
            crew.tend()
            await asyncio.sleep(0.2)

    def _troubles(
        self, watch: Watch, crew: Crew, proxies: list[Proxy]
    ) -> list[Coroutine[Any, Any, None]]:
        pace = self._pace
        return [
            self._again(watch, pace.kill, lambda: self._kill(crew)),
            self._again(watch, pace.freeze, lambda: self._freeze(crew)),
            self._again(watch, pace.cut, lambda: self._cut(self._chance.choice(proxies))),
            self._again(watch, pace.postgres, self._restart_postgres),
            self._again(watch, pace.rabbit, self._restart_rabbit),
        ]

    async def _again(
        self, watch: Watch, seconds: float, trouble: Callable[[], Awaitable[None]]
    ) -> None:
        """Waits also until some items were settled since it last came: on a slow machine, only
        that would be shown that nothing is done while nothing is up."""
        settled = 0
        await self._first_time(watch, self._chance.uniform(0, 2 * seconds))
        while not self._over.is_set():
            while watch.settled <= settled + self._pace.items and not self._over.is_set():
                await asyncio.sleep(0.05)
            if not self._over.is_set():
                settled = watch.settled
                await trouble()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), self._chance.uniform(0, 2 * seconds))

    async def _first_time(self, watch: Watch, seconds: float) -> None:
        """At a random moment, or sooner if the items are settled fast: each trouble comes once."""
        loop = asyncio.get_running_loop()
        late = loop.time() + seconds
        while loop.time() < late and watch.settled <= 2 * self._pace.items:
            if self._over.is_set():
                return
            await asyncio.sleep(0.05)

    async def _kill(self, crew: Crew) -> None:
        if victims := crew.at_work():
            self._chance.choice(victims).send_signal(signal.SIGKILL)
            self.counts["kills"] += 1

    async def _freeze(self, crew: Crew) -> None:
        while not (workers := crew.at_work(workers_only=True)):
            if self._over.is_set():
                return
            await asyncio.sleep(0.05)
        frozen = self._chance.choice(workers)
        frozen.send_signal(signal.SIGSTOP)
        await asyncio.sleep(FROZEN_SECONDS)
        frozen.send_signal(signal.SIGCONT)
        self.counts["freezes"] += 1

    async def _cut(self, proxy: Proxy) -> None:
        """A connection that breaks is one thing, a network that swallows everything another."""
        if self._chance.random() < 0.3:
            proxy.stall()
            await asyncio.sleep(STALL_SECONDS)
            proxy.flow()
        await proxy.cut()
        self.counts["cuts"] += 1

    async def _restart_postgres(self) -> None:
        hard = self._chance.random() < 0.5
        stop = self._postgres.stop_hard if hard else self._postgres.stop
        await asyncio.to_thread(stop)
        await asyncio.to_thread(self._postgres.start)
        self.counts["restarts of PostgreSQL"] += 1

    async def _restart_rabbit(self) -> None:
        hard = self._chance.random() < 0.5
        stop = self._rabbit.stop_hard if hard else self._rabbit.stop
        await asyncio.to_thread(stop)
        await asyncio.sleep(AWAY_SECONDS)
        await asyncio.to_thread(self._rabbit.start)
        self.counts["restarts of RabbitMQ"] += 1


def _wait_until_done(scene: Scene, job_id: int) -> None:
    query = f"select state from jobs where id = {job_id}"
    wait_until(lambda: scene.fetch(query)[0][0] == "DONE", "the job is done", 120)
