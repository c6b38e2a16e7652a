"""The peers, each at the best configuration found for two cores.

Their modules are imported only in processes of their own: each takes its addresses from the
environment, as its workers do.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from uuid import uuid4

import redis

from bench import measure
from bench.measure import Rate, RunFailed, python
from bench.servers import Servers


@dataclass(frozen=True, slots=True)
class Peer:
    name: str
    package: str
    setup: str
    stores: str  # where it keeps what a task returned; empty: it does not
    worker: tuple[str, ...]
    noop_count: int
    workers: int = 1
    waiting_count: int = 0  # 0: its tasks are not coroutines

    @property
    def title(self) -> str:
        return f"{self.name} {version(self.package)}"


@dataclass(frozen=True, slots=True)
class PeerRun:
    peer: Peer
    rate: Rate
    kept: int  # results found afterwards, or rows that say a task is done


def _own_runner(module: str) -> tuple[str, ...]:
    return tuple(python("bench.peers", "work", module))


PEERS = (
    Peer(
        name="Celery",
        package="celery",
        setup="RabbitMQ, prefork -c 2, prefetch 64",
        stores="Redis",
        worker=(
            *python("celery", "-A", "bench.peers.celery", "worker", "-P", "prefork", "-c", 2),
            *("--loglevel", "error", "--without-gossip", "--without-mingle"),
            "--without-heartbeat",
        ),
        noop_count=10_000,
    ),
    Peer(
        name="Dramatiq",
        package="dramatiq",
        setup="RabbitMQ, 2 processes, 8 threads",
        stores="Redis",
        worker=tuple(python("dramatiq", "bench.peers.dramatiq", "-p", 2, "-t", 8)),
        noop_count=25_000,
    ),
    Peer(
        name="Taskiq",
        package="taskiq",
        setup="RabbitMQ, 2 processes, prefetch 100",
        stores="Redis",
        worker=(
            *python("taskiq", "worker", "bench.peers.taskiq:broker", "--workers", 2),
            *("--max-async-tasks", "256", "--max-prefetch", "100", "--log-level", "ERROR"),
        ),
        noop_count=20_000,
        waiting_count=20_000,
    ),
    Peer(
        name="Huey",
        package="huey",
        setup="Redis, 2 processes",
        stores="Redis",
        worker=(
            *python("huey.bin.huey_consumer", "bench.peers.huey.huey", "-k", "process"),
            *("-w", "2", "-q", "-n"),
        ),
        noop_count=25_000,
    ),
    Peer(
        name="pgqueuer",
        package="pgqueuer",
        setup="PostgreSQL, 2 processes, batches of 1,000",
        stores="",
        worker=_own_runner("pgqueuer"),
        workers=2,
        noop_count=150_000,
        waiting_count=120_000,
    ),
    Peer(
        name="awa-pg",
        package="awa-pg",
        setup="PostgreSQL, 2 processes, 256 workers each",
        stores="",
        worker=_own_runner("awa"),
        workers=2,
        noop_count=60_000,
        waiting_count=60_000,
    ),
)


def run(peer: Peer, kind: str, count: int, servers: Servers, folder: Path) -> PeerRun:
    """Enqueues `count` tasks, then lets fresh workers drain them."""
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
    with measure.processes([peer.worker] * peer.workers, folder, extra) as started:
        rate = measure.marked_rate(marks, count, started, timeout_seconds=180)
        kept = _kept(module, count, extra)
    return PeerRun(peer, rate, kept)


def _kept(module: str, count: int, extra: dict[str, str]) -> int:
    """The last marks come a little before the last results are written."""
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
