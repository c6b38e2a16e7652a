"""Measures records that applications add one by one: how soon they start, and what they cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg

import holdfast
from bench import data
from bench.arrivals import run as arrivals
from bench.arrivals.run import HOLDFAST, Contender, Latency
from bench.measure import ROOT, RunFailed, processes, run_to_end
from bench.report import Result, Table, Target, at_least, at_most, per_second
from bench.scenarios.ground import Ground

PEERS = ("procrastinate", "pgqueuer", "awa")
OFTEN, RARELY = 200, 2
CONNECTIONS = 8
MOST_WAL = 1_500
BATCH = 1_000
WANTED_BATCHED = 60_000
MOST_AFTER_KILL_MS = 1_000
SAMPLE_SECONDS = 2.0
_BYTES = (
    "select sum(pg_total_relation_size(relid)) from pg_stat_user_tables"
    " where relname not in ('items', 'outcomes')"
)


@dataclass(slots=True)
class Figures:
    often: Latency | None = None
    rarely: Latency | None = None
    after_kill: Latency | None = None
    peak: float | None = None
    wal: float | None = None
    dead: tuple[float, float] | None = None
    size: tuple[float, float] | None = None
    held: tuple[Latency, Latency] | None = None


def run(ground: Ground) -> Result:
    result = Result("enqueue")
    found = {name: _measure(ground, result, name) for name in (HOLDFAST, *PEERS)}
    batched = ground.attempt(result, "Holdfast, batches", _batches, ground)
    result.tables += [_latencies(found), _costs(found, ground)]
    _note(result, found, batched)
    _judge(result, found, batched)
    return result


def _measure(ground: Ground, result: Result, name: str) -> Figures:
    figures = Figures()
    contender = ground.attempt(
        result, f"{name}, install", arrivals.fresh, ground.servers, ground.folder, name
    )
    if contender is None:
        return figures
    steps: tuple[tuple[str, Callable[[Ground, Contender, Figures], None]], ...] = (
        (f"{OFTEN}/s", _often),
        (f"{RARELY}/s", _rarely),
        ("killed worker", _kill),
        ("full load", _full_load),
        ("held transaction", _held),
    )
    for what, step in steps:
        ground.attempt(result, f"{name}, {what}", step, ground, contender, figures)
    ground.servers.drop_database(f"arrivals_{name}")
    return figures


def _often(ground: Ground, contender: Contender, figures: Figures) -> None:
    with contender.working():
        before = contender.number("select pg_current_wal_lsn() - '0/0'::pg_lsn")
        with contender.producing(OFTEN, ground.sizes.arrival_seconds):
            pass
        figures.often = contender.latency()
        time.sleep(2.0)  # for what is settled later
        after = contender.number("select pg_current_wal_lsn() - '0/0'::pg_lsn")
    figures.wal = (after - before) / (OFTEN * ground.sizes.arrival_seconds)


def _rarely(ground: Ground, contender: Contender, figures: Figures) -> None:
    with contender.working():
        with contender.producing(RARELY, ground.sizes.arrival_seconds * 2):
            pass
        figures.rarely = contender.latency()


def _kill(ground: Ground, contender: Contender, figures: Figures) -> None:
    """Measures records that were committed after the death; what the dead worker held is not
    counted."""
    seconds = ground.sizes.arrival_seconds
    with contender.working() as workers:
        with _lenient(), contender.producing(OFTEN, seconds):
            time.sleep(seconds / 2)
            killed_at = arrivals.kill(workers[0])
        figures.after_kill = contender.latency(since=killed_at)


@contextmanager
def _lenient() -> Iterator[None]:
    """Tolerates records that the dead worker held and that take longer than this scenario waits."""
    try:
        yield
    except RunFailed as failure:
        if "did not begin all" not in str(failure):
            raise


def _full_load(ground: Ground, contender: Contender, figures: Figures) -> None:
    with contender.working():
        contender.produce(0, ground.sizes.arrival_seconds / 2, CONNECTIONS)
        contender.finish()
        figures.peak = contender.rate()


def _held(ground: Ground, contender: Contender, figures: Figures) -> None:
    """Holds a transaction open twice as long, which leaves twice as much behind; records must not
    start later for that."""
    halves = []
    seconds = _held_seconds(ground, contender.name)
    with contender.working(), _transaction(contender.url):
        for _ in range(2):
            with contender.producing(OFTEN, seconds):
                left = _most_left(contender, seconds)
            halves.append((*left, contender.latency()))
            contender.committed.unlink()
            contender.begun.write_text("")
    figures.dead, figures.size, figures.held = zip(*halves, strict=True)


def _most_left(contender: Contender, seconds: float) -> tuple[float, float]:
    """Returns dead rows, and the bytes of all tables except those with the records and their
    results."""
    dead = size = 0.0
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        time.sleep(min(SAMPLE_SECONDS, seconds))
        dead = max(dead, contender.number("select sum(n_dead_tup) from pg_stat_user_tables"))
        size = max(size, contender.number(_BYTES))
    return dead, size


def _held_seconds(ground: Ground, name: str) -> float:
    """Returns how long it is held. Peers get less time: theirs is only shown beside ours."""
    return ground.sizes.held_seconds if name == HOLDFAST else ground.sizes.arrival_seconds


@contextmanager
def _transaction(url: str) -> Iterator[None]:
    with psycopg.connect(url) as connection:
        connection.execute("set transaction isolation level repeatable read")
        connection.execute("select pg_current_xact_id()")
        yield
        connection.rollback()


def _batches(ground: Ground) -> float:
    """Returns records per second from the first call to the last outcome."""
    url = ground.servers.fresh_database("arrivals_batches")
    folder = ground.folder / "arrivals-batches"
    folder.mkdir(exist_ok=True)
    settings = {
        "HOLDFAST_DATABASE_URL": url,
        "HOLDFAST_DATA_DIR": str(folder),
        "HOLDFAST_LOG_LEVEL": "warning",
        "BENCH_NOTES": str(folder / "unused"),
    }
    noop, count = str(ROOT / "bench" / "noop.py"), ground.sizes.batched_items
    run_to_end([["holdfast", "open", noop]], folder, settings)
    work = ["holdfast", "work", noop]
    with processes([work] * 2, folder, settings), psycopg.connect(url) as connection:
        _add_batches(connection, BATCH)
        _await_outcomes(connection, BATCH)
        started = time.monotonic()
        _add_batches(connection, count)
        _await_outcomes(connection, BATCH + count)
        seconds = time.monotonic() - started
    ground.servers.drop_database("arrivals_batches")
    return count / seconds


def _add_batches(connection: psycopg.Connection, count: int) -> None:
    for start in range(0, count, BATCH):
        holdfast.enqueue(connection, "noop", data.rows(BATCH, start))
        connection.commit()


def _await_outcomes(connection: psycopg.Connection, count: int) -> None:
    deadline = time.monotonic() + 300
    while True:
        row = connection.execute("select sum(done) from holdfast.counters").fetchone()
        connection.commit()
        if row is not None and int(row[0] or 0) >= count:
            return
        if time.monotonic() > deadline:
            raise RunFailed("the batches were not worked off")
        time.sleep(0.02)


def _latencies(found: dict[str, Figures]) -> Table:
    title = "Milliseconds from the commit of a record to its start (p50 / p99)"
    table = Table(title, ("", f"{OFTEN}/s", f"{RARELY}/s", "after a kill: p50 / largest"))
    for name, figures in found.items():
        killed = figures.after_kill
        after = "—" if killed is None else f"{killed.p50:.1f} / {killed.largest:.1f}"
        table.add(name, _pair(figures.often), _pair(figures.rarely), after)
    return table


def _pair(latency: Latency | None) -> str:
    return "—" if latency is None else f"{latency.p50:.1f} / {latency.p99:.1f}"


def _costs(found: dict[str, Figures], ground: Ground) -> Table:
    columns = ("", "records/s, one by one", "WAL bytes a record", "held, s", "dead rows", "MB")
    title = "Cost, and the most that is left in each half of the time that a transaction is held"
    table = Table(title, columns)
    for name, figures in found.items():
        dead = "—" if figures.dead is None else " → ".join(f"{n:,.0f}" for n in figures.dead)
        size = "—" if figures.size is None else " → ".join(f"{n / 1e6:.1f}" for n in figures.size)
        wal = "—" if figures.wal is None else f"{figures.wal:,.0f}"
        held = f"{2 * _held_seconds(ground, name):g}"
        table.add(name, per_second(figures.peak), wal, held, dead, size)
    table.notes.append(f"One by one: {CONNECTIONS} connections, one transaction for each record.")
    table.notes.append(
        "MB: of all tables but Holdfast's items and outcomes, which keep the records."
    )
    return table


def _note(result: Result, found: dict[str, Figures], batched: float | None) -> None:
    for name, figures in found.items():
        for what in ("often", "rarely", "after_kill"):
            latency = getattr(figures, what)
            if latency is not None:
                result.figures[f"{name}, {what}, p50 ms"] = latency.p50
                result.figures[f"{name}, {what}, p99 ms"] = latency.p99
                result.figures[f"{name}, {what}, largest ms"] = latency.largest
        for what in ("peak", "wal"):
            if getattr(figures, what) is not None:
                result.figures[f"{name}, {what}"] = getattr(figures, what)
        if figures.dead is not None and figures.size is not None:
            result.figures[f"{name}, dead rows"] = figures.dead[1]
            result.figures[f"{name}, bytes held"] = figures.size[1]
    if batched is not None:
        result.figures["batches of 1,000"] = batched


def _judge(result: Result, found: dict[str, Figures], batched: float | None) -> None:
    ours = found[HOLDFAST]
    for what, words in (("often", f"{OFTEN}/s"), ("rarely", f"{RARELY}/s")):
        for part in ("p50", "p99"):
            theirs = [getattr(getattr(found[peer], what), part, None) for peer in PEERS]
            best = min((value for value in theirs if value is not None), default=None)
            seen = getattr(getattr(ours, what), part, None)
            result.targets.append(_no_slower(f"commit to start at {words}, {part}", seen, best))
    largest = None if ours.after_kill is None else ours.after_kill.largest
    fastest = max((found[peer].peak or 0.0 for peer in PEERS), default=0.0)
    ratio = ours.peak / fastest if ours.peak and fastest else None
    result.targets += [
        at_most("largest wait after a kill", largest, MOST_AFTER_KILL_MS, "ms"),
        at_least("full load, one by one", ratio, 3, "the fastest peer"),
        at_most("WAL of a record", ours.wal, MOST_WAL, "bytes"),
        _batched_target(batched),
        at_most("commit to start under a held transaction, p50", _slower(ours), 2, "× without"),
    ]


def _slower(figures: Figures) -> float | None:
    """Returns how much slower records start in the second half of the time that it is held."""
    if figures.held is None or not figures.often or not figures.often.p50:
        return None
    return figures.held[1].p50 / figures.often.p50


def _no_slower(name: str, seen: float | None, best: float | None) -> Target:
    if seen is None or best is None:
        return Target(name, "no slower than the fastest peer", "not measured", None)
    words = f"no slower than the fastest peer, {best:.1f} ms"
    return Target(name, words, f"{seen:.1f} ms", seen <= best)


def _batched_target(batched: float | None) -> Target:
    words = f"{WANTED_BATCHED:,} records/s"
    if batched is None:
        return Target("batches of 1,000, to the outcome", words, "not measured", None)
    met = batched >= WANTED_BATCHED
    return Target("batches of 1,000, to the outcome", words, f"{batched:,.0f} records/s", met)
