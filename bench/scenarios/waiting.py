"""Processes items that wait 10 ms: how much of what the concurrency allows is reached by one
worker."""

from __future__ import annotations

from bench import floors, holdfast_runs, peers
from bench.holdfast_runs import Worked
from bench.peers import PEERS
from bench.report import Result, Table, Target, per_second, times
from bench.scenarios.ground import Ground

WAIT_SECONDS = 0.010
CONCURRENCIES = (64, 256)
FULL_CORE = 0.9  # a worker that keeps a core this busy cannot do more


def run(ground: Ground) -> Result:
    result = Result("waiting")
    columns = ("contender", "items/s", "the concurrency allows", "reached", "cores busy")
    table = Table("Items that wait 10 ms, on PostgreSQL", columns)
    for concurrency in CONCURRENCIES:
        _add_own(ground, result, table, concurrency)
    for peer in PEERS:
        if peer.waiting_count:
            _add_peer(ground, result, table, peer)
    table.notes.append("Holdfast: one process. Bare: asyncio.sleep alone on uvloop, no database.")
    result.tables.append(table)
    return result


def _add_own(ground: Ground, result: Result, table: Table, concurrency: int) -> None:
    allowed = concurrency / WAIT_SECONDS
    count = int(allowed) * ground.sizes.waiting_seconds
    bare = floors.bare_waiting(concurrency, count // 4).per_second
    table.add(f"bare, {concurrency}", per_second(bare), per_second(allowed), times(bare / allowed))
    result.figures[f"bare {concurrency}"] = bare
    worked = ground.attempt(
        result,
        f"Holdfast, concurrency {concurrency}, {count:,} items",
        _on_postgres,
        ground,
        concurrency,
        count,
    )
    result.targets.append(_target(concurrency, worked, allowed))
    if worked is None:
        return
    rate, cores = worked.rate.per_second, worked.watch.busy_cores()
    result.figures |= {f"Holdfast {concurrency}": rate, f"Holdfast {concurrency} cores": cores}
    table.add(
        f"Holdfast, {concurrency}",
        per_second(rate),
        per_second(allowed),
        times(rate / allowed),
        f"{cores:.2f}",
    )


def _on_postgres(ground: Ground, concurrency: int, count: int) -> Worked:
    database = holdfast_runs.fresh_postgres(ground.servers, ground.folder)
    holdfast_runs.ingest(database, ground.file(count), ground.folder, holdfast_runs.WAITING)
    database.settle_down()
    fixed = holdfast_runs.fixed_concurrency(concurrency)
    return holdfast_runs.work(database, 1, ground.folder, holdfast_runs.WAITING, fixed)


def _target(concurrency: int, worked: Worked | None, allowed: float) -> Target:
    name = f"items that wait 10 ms, concurrency {concurrency}"
    wanted = "at least 0.8 × what it allows, until a core is full"
    if worked is None:
        return Target(name, wanted, "not measured", None)
    reached, cores = worked.rate.per_second / allowed, worked.watch.busy_cores()
    full = cores >= FULL_CORE
    seen = f"{reached:.2f} ×, core {'full' if full else 'not full'}"
    return Target(name, wanted, seen, reached >= 0.8 or full)


def _add_peer(ground: Ground, result: Result, table: Table, peer: peers.Peer) -> None:
    count = int(peer.waiting_count * ground.sizes.peer_share)
    what = f"{peer.name}, {count:,} waiting tasks"
    found = ground.attempt(
        result, what, peers.run, peer, "waiting", count, ground.servers, ground.folder
    )
    if found is not None:
        rate = found.rate.per_second
        result.figures[peer.name] = rate
        table.add(f"{peer.title}, {peer.setup}", per_second(rate))
