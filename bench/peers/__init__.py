"""The peers, each at the best configuration found for two cores.

Their modules are imported only in processes of their own: each takes its addresses from the
environment, as its workers do.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from uuid import uuid4

import redis

from bench import measure
from bench.measure import Rate, RunFailed, python
from bench.servers import Servers

#: the commands of a peer's workers, for this many processes in all
Commands = Callable[[int], list[list[str]]]


@dataclass(frozen=True, slots=True)
class Peer:
    name: str
    package: str
    setup: str
    stores: str  # where it stores what a task returned; empty: it does not
    commands: Commands
    noop_count: int  # for two processes: at least 5 s of work
    waiting_count: int = 0  # 0: its tasks are not coroutines
    on_rabbit: bool = False

    @property
    def title(self) -> str:
        return f"{self.name} {version(self.package)}"


@dataclass(frozen=True, slots=True)
class PeerRun:
    peer: Peer
    rate: Rate
    kept: int  # results found afterwards, or rows that say a task is done


def _celery(processes: int) -> list[list[str]]:
    quiet = ("--loglevel", "error", "--without-gossip", "--without-mingle", "--without-heartbeat")
    pool = ("-P", "prefork", "-c", processes)
    return [python("celery", "-A", "bench.peers.celery", "worker", *pool, *quiet)]


def _dramatiq(processes: int) -> list[list[str]]:
    return [python("dramatiq", "bench.peers.dramatiq", "-p", processes, "-t", 8)]


def _taskiq(processes: int) -> list[list[str]]:
    limits = ("--max-async-tasks", 256, "--max-prefetch", 100, "--log-level", "ERROR")
    return [
        python("taskiq", "worker", "bench.peers.taskiq:broker", "--workers", processes, *limits)
    ]


def _huey(processes: int) -> list[list[str]]:
    pool = ("-k", "process", "-w", processes)
    return [python("huey.bin.huey_consumer", "bench.peers.huey.huey", *pool, "-q", "-n")]


def _pgqueuer(processes: int) -> list[list[str]]:
    return [python("bench.peers", "work", "pgqueuer")] * processes


def _awa(processes: int) -> list[list[str]]:
    return [python("bench.peers", "work", "awa")] * processes


PEERS = (
    Peer(
        name="Celery",
        package="celery",
        setup="RabbitMQ, prefork, prefetch 64",
        stores="Redis",
        commands=_celery,
        noop_count=10_000,
        on_rabbit=True,
    ),
    Peer(
        name="Dramatiq",
        package="dramatiq",
        setup="RabbitMQ, 8 threads",
        stores="Redis",
        commands=_dramatiq,
        noop_count=25_000,
        on_rabbit=True,
    ),
    Peer(
        name="Taskiq",
        package="taskiq",
        setup="RabbitMQ, prefetch 100",
        stores="Redis",
        commands=_taskiq,
        noop_count=20_000,
        waiting_count=20_000,
        on_rabbit=True,
    ),
    Peer(
        name="Huey",
        package="huey",
        setup="Redis",
        stores="Redis",
        commands=_huey,
        noop_count=25_000,
    ),
    Peer(
        name="pgqueuer",
        package="pgqueuer",
        setup="PostgreSQL, batches of 1,000",
        stores="",
        commands=_pgqueuer,
        noop_count=150_000,
        waiting_count=120_000,
    ),
    Peer(
        name="awa-pg",
        package="awa-pg",
        setup="PostgreSQL, 256 workers in each",
        stores="",
        commands=_awa,
        noop_count=60_000,
        waiting_count=60_000,
    ),
)


def run(
    peer: Peer, kind: str, count: int, servers: Servers, folder: Path, processes: int = 2
) -> PeerRun:
    """Enqueues `count` tasks, then lets this many fresh worker processes drain them."""
    module = peer.name.split("-")[0].lower()
    marks = folder / "marks"
    marks.write_bytes(b"")
    redis.Redis.from_url(servers.redis_url).flushall()
    extra = {
        "BENCH_KIND": kind,
        "BENCH_MARKS": str(marks),
        "BENCH_QUEUE": f"bench-{uuid4().hex[:8]}",
        "BENCH_DSN": servers.fresh_database("peer"),
        "BENCH_REDIS_URL": servers.redis_url,
        "BENCH_AMQP_URL": servers.amqp_url,
    }
    measure.run_to_end([python("bench.peers", "enqueue", module, count)], folder, extra)
    with measure.processes(peer.commands(processes), folder, extra) as started:
        rate = measure.marked_rate(marks, count, started, timeout_seconds=180)
        kept = _kept(module, count, extra)
    return PeerRun(peer, rate, kept)


def _kept(module: str, count: int, extra: dict[str, str]) -> int:
    """Counts what is kept. The last marks come a little before the last results are written."""
    answer = subprocess.run(
        python("bench.peers", "kept", module, count),
        cwd=measure.ROOT,
        env=measure.environment(extra),
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode:
        raise RunFailed(answer.stderr[-2000:])
    return int(answer.stdout)
