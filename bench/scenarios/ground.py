"""The ground of every scenario: servers, a scratch folder, sizes, and a way to continue after
failures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

from bench import data
from bench.measure import RunFailed
from bench.report import Result
from bench.servers import Servers

Given = ParamSpec("Given")
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Sizes:
    noop_items: int
    rounds: int  # each figure is the median of this many rounds
    peer_share: float  # share of the peers' own counts, which give each at least 5 s of work
    waiting_seconds: int
    ingest_rows: tuple[int, int]
    growth_levels: tuple[int, ...]
    growth_job: int
    wal_items: int
    start_jobs: int  # committed one after the other to an idle fleet
    held_items: int
    row_seconds: float  # the longest that the row queue of `held` may take
    page_rows: int
    pages_each: int  # requests at each depth
    export_rows: tuple[int, int]
    upload_rows: int
    live_items: int
    live_pages: int
    arrival_seconds: float  # of records that come one by one
    held_seconds: float  # half of the time that they come while a transaction is held open
    batched_items: int
    beside_seconds: float  # of records that come beside a bulk job
    beside_noop_items: int


FULL = Sizes(
    noop_items=500_000,
    rounds=3,
    peer_share=1.0,
    waiting_seconds=8,
    ingest_rows=(250_000, 1_000_000),
    growth_levels=(10_000, 1_000_000, 5_000_000),
    growth_job=100_000,
    wal_items=100_000,
    start_jobs=200,
    held_items=1_000_000,
    row_seconds=60,
    page_rows=10_000_000,
    pages_each=200,
    export_rows=(100_000, 400_000),
    upload_rows=1_000_000,
    live_items=1_000_000,
    live_pages=200,
    arrival_seconds=60,
    held_seconds=300,
    batched_items=600_000,
    beside_seconds=60,
    beside_noop_items=3_000_000,
)
QUICK = Sizes(
    noop_items=50_000,
    rounds=1,
    peer_share=0.1,
    waiting_seconds=2,
    ingest_rows=(20_000, 80_000),
    growth_levels=(10_000, 50_000, 100_000),
    growth_job=20_000,
    wal_items=20_000,
    start_jobs=20,
    held_items=50_000,
    row_seconds=10,
    page_rows=500_000,
    pages_each=60,
    export_rows=(10_000, 40_000),
    upload_rows=50_000,
    live_items=100_000,
    live_pages=200,
    arrival_seconds=5,
    held_seconds=5,
    batched_items=100_000,
    beside_seconds=10,
    beside_noop_items=400_000,
)


@dataclass(frozen=True, slots=True)
class Ground:
    servers: Servers
    folder: Path
    sizes: Sizes
    say: Callable[[str], None]
    only: Sequence[str] = ()

    def wants(self, cell: str) -> bool:
        """Whether the name of this part of a scenario has all the words of --only."""
        return all(words in cell for words in self.only)

    def file(self, count: int) -> Path:
        """Returns a CSV file of this many rows, written once."""
        path = self.folder / f"rows-{count}.csv"
        return path if path.exists() else data.write_csv(path, count)

    def attempt(
        self,
        result: Result,
        what: str,
        run: Callable[Given, Found],
        *given: Given.args,
        **named: Given.kwargs,
    ) -> Found | None:
        """Says what runs; a contender that fails is noted and does not stop the others."""
        self.say(what)
        try:
            return run(*given, **named)
        except RunFailed as failure:
            result.failures.append(f"{what}: {failure}")
            return None
