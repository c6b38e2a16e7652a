"""Compares the fleet with polling, Celery, Dramatiq and Taskiq; and measures how soon committed
work begins."""

from __future__ import annotations

from collections import defaultdict
from statistics import median

from bench import fleet_runs, peers, starts
from bench.fleet_runs import Fleet
from bench.measure import Rate
from bench.peers import PEERS
from bench.report import Result, Table, Target, at_least, per_second, ratio, times
from bench.scenarios.ground import Ground

PROCESSES = (1, 2, 4)
IDLE_WORKERS = 2
MOST_START_MS = 250
POLLING_SHARE = 0.8
PEER_FACTOR = 15
RABBIT_PEERS = tuple(peer for peer in PEERS if peer.on_rabbit)

Rates = dict[str, float]


def run(ground: Ground) -> Result:
    result = Result("fleet")
    rates = _own(ground, result) | _peers(ground, result)
    result.figures = dict(rates)
    result.tables.append(_rate_table(rates))
    for processes in PROCESSES:
        _add_rate_targets(result, rates, processes)
    _add_starts(ground, result)
    return result


def _own(ground: Ground, result: Result) -> Rates:
    """Alternates messages and polling, round by round: a busy moment hits both alike."""
    found = defaultdict[str, list[float]](list)
    for _ in range(ground.sizes.rounds):
        for processes in PROCESSES:
            for name in ("fleet", "polling"):
                what = f"{name} {processes}"
                rate = ground.attempt(result, what, _one_run, ground, name, processes)
                if rate is not None:
                    found[what].append(rate.per_second)
    return {name: median(values) for name, values in found.items()}


def _one_run(ground: Ground, name: str, processes: int) -> Rate:
    fleet = fleet_runs.fresh_fleet(ground.servers, ground.folder, messages=name == "fleet")
    job_id = fleet_runs.ingest(fleet, ground.file(ground.sizes.noop_items))
    return fleet_runs.work(fleet, job_id, processes)


def _peers(ground: Ground, result: Result) -> Rates:
    rates: Rates = {}
    for processes in PROCESSES:
        for peer in RABBIT_PEERS:
            share = ground.sizes.peer_share * min(processes, 2) / 2
            count = int(peer.noop_count * share)
            what = f"{peer.name} {processes}, {count:,} tasks"
            given = (peer, "noop", count, ground.servers, ground.folder, processes)
            found = ground.attempt(result, what, peers.run, *given)
            if found is None:
                continue
            rates[f"{peer.name} {processes}"] = found.rate.per_second
            if found.kept != count:
                result.failures.append(f"{what}: kept {found.kept:,}")
    return rates


def _fastest(rates: Rates, processes: int) -> float | None:
    found = [rates.get(f"{peer.name} {processes}") for peer in RABBIT_PEERS]
    return max((rate for rate in found if rate), default=None)


def _rate_table(rates: Rates) -> Table:
    columns = ("", *(f"{processes} proc." for processes in PROCESSES))
    table = Table("No-op items/s in a fleet, by worker processes", columns)
    for name in ("fleet", "polling", *(peer.name for peer in RABBIT_PEERS)):
        table.add(_title(name), *(per_second(rates.get(f"{name} {n}")) for n in PROCESSES))
    own = {n: rates.get(f"fleet {n}") for n in PROCESSES}
    polling = (times(ratio(own[n], rates.get(f"polling {n}"))) for n in PROCESSES)
    table.add("fleet / polling", *polling)
    peer = (times(ratio(own[n], _fastest(rates, n))) for n in PROCESSES)
    table.add("fleet / fastest peer", *peer)
    table.notes += [
        "One PostgreSQL, durable; one RabbitMQ. A relay runs besides the workers of the fleet.",
        "Results kept in: PostgreSQL (Holdfast), Redis, fsync each second (Celery, Dramatiq,",
        "Taskiq). From the first outcome to the last; no one's enqueueing is counted.",
    ]
    return table


def _title(name: str) -> str:
    own = {"fleet": "Holdfast, RabbitMQ", "polling": "Holdfast, polling"}
    titles = {peer.name: f"{peer.title}, {peer.setup}" for peer in RABBIT_PEERS}
    return (own | titles)[name]


def _add_rate_targets(result: Result, rates: Rates, processes: int) -> None:
    own, name = rates.get(f"fleet {processes}"), f"fleet, {processes} processes"
    polling, fastest = rates.get(f"polling {processes}"), _fastest(rates, processes)
    result.targets += [
        at_least(name, ratio(own, polling), POLLING_SHARE, "polling"),
        at_least(name, ratio(own, fastest), PEER_FACTOR, "the fastest of those peers"),
    ]


def _add_starts(ground: Ground, result: Result) -> None:
    jobs = ground.sizes.start_jobs
    what = f"start of work at idle, {jobs} jobs each way"
    found = ground.attempt(result, what, _starts, ground, jobs) or {}
    columns = ("", "p50 ms", "p99 ms", "longest ms")
    title = f"From commit to start of work at idle, {jobs} jobs one after the other"
    table = Table(title, columns)
    for name, seconds in found.items():
        shown = {"p50": 0.5, "p99": 0.99, "longest": 1.0}
        figures = {key: starts.percentile(seconds, share) * 1000 for key, share in shown.items()}
        result.figures |= {f"{name} start {key} ms": value for key, value in figures.items()}
        table.add(_title(name), *(f"{value:.1f}" for value in figures.values()))
    table.notes.append(
        f"{IDLE_WORKERS} worker processes each; the commit itself is counted; both ways in turn."
    )
    result.tables.append(table)
    result.targets.append(_start_target(result.figures.get("fleet start p99 ms")))


def _starts(ground: Ground, jobs: int) -> dict[str, list[float]]:
    fleets: dict[str, Fleet] = {
        "fleet": fleet_runs.fresh_fleet(ground.servers, ground.folder, messages=True),
        "polling": fleet_runs.fresh_fleet(ground.servers, ground.folder, messages=False),
    }
    with (
        fleets["fleet"].running(IDLE_WORKERS, starts.NOTING),
        fleets["polling"].running(IDLE_WORKERS, starts.NOTING),
    ):
        return starts.measured(fleets, jobs)


def _start_target(seen: float | None) -> Target:
    wanted = f"under {MOST_START_MS} ms"
    if seen is None:
        return Target("fleet, start of work at idle, p99", wanted, "not measured", None)
    met = seen < MOST_START_MS
    return Target("fleet, start of work at idle, p99", wanted, f"{seen:.1f} ms", met)
