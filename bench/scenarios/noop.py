"""Processes no-op items end to end: claim, decode, one coroutine call, encode, settle."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from statistics import median

from bench import floors, holdfast_runs, peers
from bench.measure import Rate
from bench.peers import PEERS, Peer
from bench.report import Result, Table, at_least, per_second, ratio, times
from bench.scenarios.ground import Ground

WORKERS = (1, 2)

Rates = dict[str, float]


def run(ground: Ground) -> Result:
    result = Result("noop")
    rates = _own_and_floors(ground, result)
    peer_rates = _peers(ground, result)
    result.figures = rates | peer_rates
    for database in ("PostgreSQL", "SQLite"):
        result.tables.append(_own_table(database, rates))
    result.tables.append(_peer_table(rates, peer_rates))
    _add_targets(result, rates, peer_rates)
    return result


def _own_and_floors(ground: Ground, result: Result) -> Rates:
    """Alternates floors and Holdfast, round by round: a busy moment hits both alike."""
    count, found = ground.sizes.noop_items, defaultdict[str, list[float]](list)
    floor_dsn = ground.servers.fresh_database("floor")
    floor_path = ground.folder / "floor.db"
    floors.fill_postgres(floor_dsn, count)

    def note(name: str, run: Callable[..., Rate], *given: object) -> None:
        rate = ground.attempt(result, name, run, *given)
        if rate is not None:
            found[name].append(rate.per_second)

    for _ in range(ground.sizes.rounds):
        for workers in WORKERS:
            note(f"floor PostgreSQL {workers}", floors.postgres_ranges, floor_dsn, count, workers)
            note(f"Holdfast PostgreSQL {workers}", _on_postgres, ground, workers)
            note(f"floor SQLite {workers}", floors.sqlite_ranges, floor_path, count, workers)
            note(f"Holdfast SQLite {workers}", _on_sqlite, ground, workers)
    return {name: median(values) for name, values in found.items()}


def _on_postgres(ground: Ground, workers: int) -> Rate:
    database = holdfast_runs.fresh_postgres(ground.servers, ground.folder)
    return _ingest_and_work(ground, database, workers)


def _on_sqlite(ground: Ground, workers: int) -> Rate:
    return _ingest_and_work(ground, holdfast_runs.fresh_sqlite(ground.folder), workers)


def _ingest_and_work(ground: Ground, database: holdfast_runs.Database, workers: int) -> Rate:
    file = ground.file(ground.sizes.noop_items)
    holdfast_runs.ingest(database, file, ground.folder)
    database.settle_down()
    return holdfast_runs.work(database, workers, ground.folder).rate


def _peers(ground: Ground, result: Result) -> Rates:
    rates: Rates = {}
    for peer in PEERS:
        count = int(peer.noop_count * ground.sizes.peer_share)
        what = f"{peer.name}, {count:,} tasks"
        found = ground.attempt(
            result, what, peers.run, peer, "noop", count, ground.servers, ground.folder
        )
        if found is not None:
            rates[peer.name] = found.rate.per_second
            if found.kept != count:
                result.failures.append(f"{peer.name} kept {found.kept:,} of {count:,}")
    return rates


def _own_table(database: str, rates: Rates) -> Table:
    columns = ("processes", "Holdfast items/s", "raw range floor items/s", "of the floor")
    table = Table(f"No-op items on {database}, end to end", columns)
    for workers in WORKERS:
        own = rates.get(f"Holdfast {database} {workers}")
        floor = rates.get(f"floor {database} {workers}")
        table.add(str(workers), per_second(own), per_second(floor), times(ratio(own, floor)))
    durable = {
        "PostgreSQL": "fsync and synchronous_commit on; the floor is on jsonb",
        "SQLite": "WAL, synchronous FULL; one writer at a time",
    }
    table.notes.append(f"Durable: {durable[database]}. From the first outcome to the last.")
    return table


def _peer_table(rates: Rates, peer_rates: Rates) -> Table:
    own = rates.get("Holdfast PostgreSQL 2")
    columns = ("contender", "set-up", "result kept in", "tasks/s", "Holdfast does")
    table = Table("No-op items beside the peers, two processes each", columns)
    table.add("Holdfast", "PostgreSQL", "PostgreSQL", per_second(own), "")
    for peer in PEERS:
        rate = peer_rates.get(peer.name)
        kept = peer.stores or "not kept"
        table.add(peer.title, peer.setup, kept, per_second(rate), times(ratio(own, rate)))
    table.notes.append("From the first task's end to the last; enqueueing is not counted.")
    return table


def _add_targets(result: Result, rates: Rates, peer_rates: Rates) -> None:
    own = rates.get("Holdfast PostgreSQL 2")
    floor = rates.get("floor PostgreSQL 2")
    storing = [peer_rates[peer.name] for peer in PEERS if _stores(peer, peer_rates)]
    fastest = max(storing, default=None)
    wanted = (
        (floor, 0.5, "the raw jsonb range floor"),
        (fastest, 20, "the fastest peer that stores results"),
        (peer_rates.get("pgqueuer"), 3, "pgqueuer"),
        (peer_rates.get("awa-pg"), 5, "awa-pg"),
    )
    for reference, factor, name in wanted:
        result.targets.append(
            at_least("no-op items, two workers", ratio(own, reference), factor, name)
        )


def _stores(peer: Peer, peer_rates: Rates) -> bool:
    return bool(peer.stores) and peer.name in peer_rates
