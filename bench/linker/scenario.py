"""Matches ten thousand entries with a Wikidata that throttles, with workers killed and another
owner's project at the same time."""

from __future__ import annotations

import csv
import json
import os
import random
import signal
import subprocess
import time
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from bench import holdfast_runs, measure
from bench.holdfast_runs import Postgres
from bench.linker.loops import AGENT
from bench.measure import RunFailed, python
from bench.report import Result, Table, at_most
from bench.scenarios.ground import QUICK, Ground
from pipelines.linker.tests.entity_world import make_world
from tests.names import whole_names

_ENTRIES, _QUICK_ENTRIES = 10_000, 500
_REPEATED = 0.3
_THROTTLED = 0.05
_REQUESTS_A_SECOND = 100
_KILLS, _QUICK_KILLS = 6, 1
_KILL_SECONDS = 5.0
_PATIENCE = 3600.0
_MOST_CALLS = 1.3
_RETRY_AFTER = 1.0
_ON_THEIR_WAY = 0.05


@dataclass(frozen=True, slots=True)
class Served:
    """What the server saw. `during`: requests that came while it had asked to wait; `resumed`: how
    long after such a time the next request came."""

    calls: int
    throttled: int
    busiest_second: int
    during: int
    resumed: list[float]


@dataclass(frozen=True, slots=True)
class Matched:
    """How the run ended; entries by owner and state."""

    seconds: float
    kills: int
    states: list[tuple[str, str, int]]


def run(ground: Ground) -> Result:
    result = Result("linker")
    quick = ground.sizes is QUICK
    count = _QUICK_ENTRIES if quick else _ENTRIES
    people = 3000 if quick else 30_000
    ground.say(f"{count:,} entries, {_REPEATED:.0%} with a name that came before")
    file = _write_entries(ground.folder / "entries.csv", count, people)
    calls = {
        way: ground.attempt(result, f"{way} loop", _loop, ground, way, file, people)
        for way in ("sequential", "batched")
    }
    database = holdfast_runs.fresh_postgres(ground.servers, ground.folder)
    log = ground.folder / "requests.json"
    own = None
    with _wikidata(ground, people, _THROTTLED, log) as url:
        kills = _QUICK_KILLS if quick else _KILLS
        own = ground.attempt(result, "Holdfast", _match, ground, database, url, file, kills)
    _tell(result, count, calls, own, _served(log) if own is not None else None)
    return result


def _write_entries(path: Path, count: int, people: int) -> Path:
    rng = random.Random(3)
    known = {p.latin: p for p in make_world(1, people=people).people if p.latin_known and p.born}
    if len(known) < count * (1 - _REPEATED):
        raise RunFailed(f"the world has only {len(known):,} names")
    names = rng.sample(sorted(known), int(count * (1 - _REPEATED)))
    names += rng.choices(names, k=count - len(names))
    rng.shuffle(names)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "name", "born", "type"])
        for number, name in enumerate(names, 1):
            writer.writerow([number, name, known[name].born, "Q5"])
    return path


@contextmanager
def _wikidata(ground: Ground, people: int, throttled: float, log: Path) -> Iterator[str]:
    command = python("bench.linker.wikidata", people, throttled, log)
    process = subprocess.Popen(command, cwd=measure.ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(60)


def _loop(ground: Ground, way: str, file: Path, people: int) -> tuple[int, float]:
    """Returns the number of calls and the seconds."""
    with _wikidata(ground, people, 0.0, ground.folder / "unused.json") as url:
        started = time.monotonic()
        done = subprocess.run(
            python("bench.linker.loops", way, url, file),
            cwd=measure.ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RunFailed(done.stderr[-500:])
        return int(done.stdout), time.monotonic() - started


def _settings(ground: Ground, database: Postgres, url: str, owner: str) -> dict[str, str]:
    return {
        "HOLDFAST_DATABASE_URL": database.url,
        "HOLDFAST_DATA_DIR": str(ground.folder / "data"),
        "HOLDFAST_ALLOW_PRIVATE_ADDRESSES": "true",
        "HOLDFAST_HTTP_USER_AGENT": AGENT,
        "HOLDFAST_LINKER_WIKIDATA_URL": url,
        "HOLDFAST_LINKER_SPACING_SECONDS": str(1 / _REQUESTS_A_SECOND),
        "HOLDFAST_LINKER_CONCURRENCY": "8",
        "HOLDFAST_OWNER": owner,
    }


def _match(ground: Ground, database: Postgres, url: str, file: Path, kills: int) -> Matched:
    """Matches until every entry of both owners has ended."""
    other = file.with_name("other.csv")
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    other.write_text("".join(lines[: max(2, len(lines) // 20)]), encoding="utf-8")
    for owner, table in (("ann", file), ("ben", other)):
        settings = _settings(ground, database, url, owner)
        command = python("holdfast", "linker", "match", table, "--no-work")
        measure.run_to_end([command], ground.folder, settings, _PATIENCE)
    started = time.monotonic()
    killed = _work(ground, _settings(ground, database, url, "ann"), kills)
    seconds = time.monotonic() - started
    open_items = "select count(*) from items i left join outcomes o using (job_id, seq)"
    left = _one(database, f"{open_items} where coalesce(o.status, 'PENDING') = 'PENDING'")
    tasks, items = _one(database, "select count(*) from linker_tasks"), len(lines) - 1
    items += len(lines[: max(2, len(lines) // 20)]) - 1
    if left or tasks != items:
        raise RunFailed(f"{left} entries are open, {tasks} of {items} have a task")
    return Matched(seconds, killed, _states(database))


def _states(database: Postgres) -> list[tuple[str, str, int]]:
    query = """
        select j.owner_id, t.state, count(*)
        from   holdfast.linker_tasks t join holdfast.jobs j on j.id = t.job_id
        group by j.owner_id, t.state
        order by j.owner_id, t.state
    """
    with psycopg.connect(database.url) as connection:
        return [(owner, state, count) for owner, state, count in connection.execute(query)]


def _work(ground: Ground, settings: dict[str, str], kills: int) -> int:
    """Runs two workers; one of them is killed from time to time, and another takes its place.

    Returns how often."""
    killed = 0
    environment = measure.environment(settings)
    command = python("holdfast", "work", "linker", "--until-idle")
    with (ground.folder / "workers.log").open("wb") as log:
        running = [
            subprocess.Popen(command, cwd=measure.ROOT, env=environment, stdout=log, stderr=log)
            for _ in range(2)
        ]
        killed_at = time.monotonic()
        while any(process.poll() is None for process in running):
            time.sleep(0.2)
            if kills and time.monotonic() - killed_at > _KILL_SECONDS and running[0].poll() is None:
                os.kill(running[0].pid, signal.SIGKILL)
                running[0].wait()
                kills, killed, killed_at = kills - 1, killed + 1, time.monotonic()
                running[0] = subprocess.Popen(
                    command, cwd=measure.ROOT, env=environment, stdout=log, stderr=log
                )
    return killed


def _one(database: Postgres, query: str) -> int:
    with psycopg.connect(database.url) as connection:
        found = connection.execute(whole_names(database.url, query)).fetchone()
    return int(found[0]) if found else 0


def _served(log: Path) -> Served:
    seen = json.loads(log.read_text())
    times = sorted(at for at, _, _ in seen)
    busiest = first = 0
    for last, at in enumerate(times):
        while at - times[first] >= 1.0:
            first += 1
        busiest = max(busiest, last - first + 1)
    refused = sorted(at for at, _, status in seen if status == 429)
    during, resumed = _around(times, refused)
    return Served(len(seen), len(refused), busiest, during, resumed)


def _around(times: list[float], refused: list[float]) -> tuple[int, list[float]]:
    """Returns the requests within the second that each refusal asked for, without those that were
    on their way, and how long after it the next one came."""
    during, resumed = 0, []
    for at in refused:
        begin, end = bisect_right(times, at + _ON_THEIR_WAY), bisect_right(times, at + _RETRY_AFTER)
        during += end - begin
        if begin == end < len(times):
            resumed.append(times[end] - at - _RETRY_AFTER)
    return during, sorted(resumed)


def _tell(
    result: Result,
    count: int,
    calls: dict[str, tuple[int, float] | None],
    matched: Matched | None,
    served: Served | None,
) -> None:
    table = Table(f"{count:,} entries, {_REPEATED:.0%} repeated", ("way", "calls/entry", "seconds"))
    for way, measured in calls.items():
        if measured is not None:
            table.add(f"{way} loop", f"{measured[0] / count:.3f}", f"{measured[1]:.1f}")
            result.figures[f"{way} calls"] = measured[0] / count
    each = busiest = None
    if matched is not None and served is not None:
        whole = sum(entries for _, _, entries in matched.states)
        each, busiest = served.calls / whole, float(served.busiest_second)
        table.add("Holdfast", f"{each:.3f}", f"{matched.seconds:.1f}")
        table.notes += _notes(matched, served)
        result.figures |= {"calls": each, "seconds": matched.seconds, "busiest": busiest}
    result.tables.append(table)
    result.targets += [
        at_most("linker, calls", each, _MOST_CALLS, "per entry, refused ones included"),
        at_most("linker, busiest second", busiest, _REQUESTS_A_SECOND + 1, "requests"),
    ]


def _notes(matched: Matched, served: Served) -> list[str]:
    states = ", ".join(f"{owner}: {count:,} {state}" for owner, state, count in matched.states)
    notes = [
        f"Every entry ended: {states}. Workers killed: {matched.kills}.",
        f"{served.throttled:,} of {served.calls:,} requests were refused with Retry-After: 1. The "
        f"busiest second had {served.busiest_second} requests; the gate allows "
        f"{_REQUESTS_A_SECOND}.",
    ]
    if served.resumed:
        middle = served.resumed[len(served.resumed) // 2]
        late = served.resumed[int(len(served.resumed) * 0.95)]
        notes.append(
            f"{served.during:,} requests came during the {served.throttled:,} seconds that were "
            f"asked for; the next came {middle:.3f} s (p50) and {late:.3f} s (p95) after them."
        )
    return notes
