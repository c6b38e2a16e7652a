"""Reads pages of large lists over HTTP: they should be as quick at the end of ten million rows as
at the start."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

from bench import api_runs, holdfast_runs
from bench.api_runs import Api
from bench.deep_job import DeepJob
from bench.measure import RunFailed
from bench.report import Result, Table, Target, times
from bench.scenarios.ground import Ground
from bench.starts import percentile
from holdfast.model import ItemStatus

DEPTHS = (0.0, 0.1, 0.9)
PAGE_SIZE = 100
MOST_MS = 25.0
FLAT = 1.5  # how much the p95 at a depth may be at most of that at the start
MS = 1000

Statuses = tuple[ItemStatus, ...]
_ITEMS: tuple[Statuses, ...] = ((), (ItemStatus.DONE,), (ItemStatus.DONE, ItemStatus.ERROR))
_PENDING: tuple[Statuses, ...] = (
    (ItemStatus.PENDING,),
    (ItemStatus.PENDING, ItemStatus.PROCESSING),
)


@dataclass(slots=True)
class _Reader:
    """A reader who pages on from one depth."""

    depth: int
    path: str
    statuses: str
    after: str | None
    seconds: list[float] = field(default_factory=list)

    def turn(self, api: Api) -> None:
        params = {"pageSize": PAGE_SIZE}
        params |= {"statuses": self.statuses} if self.statuses else {}
        params |= {"after": self.after} if self.after else {}
        begun = time.perf_counter()
        page = api.get(self.path, **params)
        self.seconds.append(time.perf_counter() - begun)
        if len(page["items"]) != PAGE_SIZE or not page["next"]:
            raise RunFailed(f"{self.path} at {self.depth}: {len(page['items'])} items")
        self.after = page["next"]


def run(ground: Ground) -> Result:
    result = Result("pages")
    columns = ("list", "statuses", "depth", "p50 ms", "p95 ms", "p95 of that at 0")
    rows = ground.sizes.page_rows
    title = f"Pages of {PAGE_SIZE} out of {rows:,} rows, over HTTP, on PostgreSQL"
    table = Table(title, columns)
    ground.attempt(result, f"pages of {rows:,} rows", _measure, ground, result, table)
    result.tables.append(table)
    if not result.targets:
        result.targets.append(Target("pages", f"p95 under {MOST_MS:g} ms", "not measured", None))
    return result


def _measure(ground: Ground, result: Result, table: Table) -> None:
    database = holdfast_runs.fresh_postgres(ground.servers, ground.folder)
    ground.say(f"making {ground.sizes.page_rows:,} open items")
    job = DeepJob(database, ground.file(1), ground.sizes.page_rows)
    with api_runs.running(database, ground.folder) as api:
        for statuses in _PENDING:
            readers = _readers(job, "/api/pending", statuses, job.pending_cursor)
            _read(ground, api, "pending", readers, result, table)
    ground.say(f"giving {ground.sizes.page_rows:,} items their outcomes")
    job.finish()
    with api_runs.running(database, ground.folder) as api:
        for statuses in _ITEMS:
            path = f"/api/jobs/{job.id}/items"
            readers = _readers(job, path, statuses, job.items_cursor)
            _read(ground, api, "items", readers, result, table)


def _readers(
    job: DeepJob, path: str, statuses: Statuses, cursor: Callable[[Statuses, int], str | None]
) -> list[_Reader]:
    depths = [int(job.count * share) for share in DEPTHS]
    text = ",".join(statuses)
    return [_Reader(depth, path, text, cursor(statuses, depth)) for depth in depths]


def _read(
    ground: Ground, api: Api, name: str, readers: list[_Reader], result: Result, table: Table
) -> None:
    """Alternates the depths, page by page: a busy moment hits all alike."""
    statuses = readers[0].statuses or "all"
    ground.say(f"{name} page, {statuses}, {ground.sizes.pages_each} pages at each depth")
    used = api.cpu_seconds()
    bare: list[float] = []
    for _ in range(ground.sizes.pages_each):
        for reader in readers:
            reader.turn(api)
        bare.append(_bare(api))
    pages = ground.sizes.pages_each * len(readers)
    _note(result, table, f"{name}, {statuses}", (api.cpu_seconds() - used) / pages, bare)
    p95 = [percentile(sorted(reader.seconds), 0.95) * MS for reader in readers]
    for reader, value in zip(readers, p95, strict=True):
        middle = median(reader.seconds) * MS
        what = f"{name} {statuses} at {reader.depth}"
        result.figures |= {f"{what}, p50 ms": middle, f"{what}, p95 ms": value}
        cells = (f"{reader.depth:,}", f"{middle:.1f}", f"{value:.1f}", times(value / p95[0]))
        table.add(name, statuses, *cells)
    result.targets.append(_target(f"{name} page, {statuses}", p95))


def _bare(api: Api) -> float:
    """Returns what the machine needs for an empty answer."""
    begun = time.perf_counter()
    api.read("GET", "/healthz")
    return time.perf_counter() - begun


def _note(result: Result, table: Table, name: str, core_seconds: float, bare: list[float]) -> None:
    core, p95 = core_seconds * MS, percentile(sorted(bare), 0.95) * MS
    result.figures |= {f"{name}, core ms a page": core, f"{name}, /healthz p95 ms": p95}
    table.notes.append(
        f"{name}: {core:.1f} ms of a core a page in the API; /healthz meanwhile p95 {p95:.1f} ms."
    )


def _target(name: str, p95: list[float]) -> Target:
    flat = max(p95) / p95[0]
    wanted = f"p95 under {MOST_MS:g} ms and flat"
    seen = f"{max(p95):.1f} ms, {flat:.2f} × that at 0"
    return Target(name, wanted, seen, max(p95) < MOST_MS and flat <= FLAT)
