"""Runs Holdfast as a user does: its commands as processes, its results read from the database."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

import psycopg

from bench import measure
from bench.measure import ROOT, Rate, RunFailed, Watch, python
from bench.servers import Servers
from tests.names import whole_names

NOOP = ROOT / "bench" / "noop.py"
WAITING = ROOT / "bench" / "waiting.py"
_FINISHES = (
    "select updated_at, count(*) from outcomes where job_id = {job_id} group by 1 order by 1"
)


class Database(Protocol):
    @property
    def url(self) -> str: ...

    def newest_job(self) -> int: ...

    def settle_down(self) -> None:
        """Leaves no upkeep of the earlier phase for the next one to pay."""

    def counts(self, job_id: int) -> tuple[int, int]:
        """Counts the items of the job, and those of them that are DONE."""

    def rate(self, job_id: int) -> Rate: ...

    def finishes(self, job_id: int) -> list[tuple[float, int]]:
        """Returns how many items of the job ended at each moment, in order."""


@dataclass(frozen=True, slots=True)
class Postgres:
    url: str

    def newest_job(self) -> int:
        return self._number("select max(id) from jobs")

    def settle_down(self) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("vacuum analyze")
            connection.execute("checkpoint")

    def checkpoint(self) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("checkpoint")

    def counts(self, job_id: int) -> tuple[int, int]:
        items = self._number(f"select count(*) from items where job_id = {job_id}")
        done = f"select count(*) from outcomes where job_id = {job_id} and status = 'DONE'"
        return items, self._number(done)

    def rate(self, job_id: int) -> Rate:
        return measure.postgres_rate(self.url, "holdfast.outcomes", f"job_id = {job_id}")

    def finishes(self, job_id: int) -> list[tuple[float, int]]:
        with psycopg.connect(self.url) as connection:
            query = whole_names(self.url, _FINISHES.format(job_id=job_id))
            rows = connection.execute(query).fetchall()  # type: ignore[call-overload]
        return [(at.timestamp(), count) for at, count in rows]

    def state(self, job_id: int) -> str:
        with psycopg.connect(self.url) as connection:
            found = connection.execute(
                f"select state from holdfast.jobs where id = {job_id}"
            ).fetchone()
        return str(found[0]) if found else ""

    def live_workers(self) -> int:
        return self._number("select count(*) from workers where stopped_at is null")

    def wal_bytes(self) -> int:
        return self._number("select pg_current_wal_lsn() - '0/0'")

    def _number(self, query: str) -> int:
        with psycopg.connect(self.url) as connection:
            found = connection.execute(whole_names(self.url, query)).fetchone()
        return int(found[0] or 0) if found else 0


@dataclass(frozen=True, slots=True)
class Sqlite:
    path: Path

    @property
    def url(self) -> str:
        return f"sqlite:///{self.path}"

    def newest_job(self) -> int:
        return self._number("select max(id) from jobs")

    def settle_down(self) -> None:
        with closing(sqlite3.connect(self.path)) as connection:
            connection.execute("pragma wal_checkpoint(truncate)")

    def counts(self, job_id: int) -> tuple[int, int]:
        items = self._number(f"select count(*) from items where job_id = {job_id}")
        done = f"select count(*) from outcomes where job_id = {job_id} and status = 'DONE'"
        return items, self._number(done)

    def rate(self, job_id: int) -> Rate:
        return measure.sqlite_rate(self.path, "holdfast_outcomes", f"job_id = {job_id}")

    def finishes(self, job_id: int) -> list[tuple[float, int]]:
        with closing(sqlite3.connect(self.path)) as connection:
            query = whole_names(self.url, _FINISHES.format(job_id=job_id))
            rows = connection.execute(query).fetchall()
        return [(datetime.fromisoformat(at).timestamp(), count) for at, count in rows]

    def _number(self, query: str) -> int:
        with closing(sqlite3.connect(self.path)) as connection:
            found = connection.execute(whole_names(self.url, query)).fetchone()
            return int(found[0] or 0)


@dataclass(frozen=True, slots=True)
class Worked:
    rate: Rate
    watch: Watch


def fresh_postgres(servers: Servers, folder: Path, name: str = "holdfast") -> Postgres:
    database = Postgres(servers.fresh_database(name))
    _migrate(database, folder)
    return database


def fresh_sqlite(folder: Path) -> Sqlite:
    database = Sqlite(folder / "holdfast.db")
    for suffix in ("", "-wal", "-shm"):
        database.path.with_name(database.path.name + suffix).unlink(missing_ok=True)
    _migrate(database, folder)
    return database


def _migrate(database: Database, folder: Path) -> None:
    measure.run_to_end([python("holdfast", "migrate", "up")], folder, settings(database, folder))


def ingest(database: Database, file: Path, folder: Path, pipeline: Path = NOOP) -> Watch:
    """Runs `holdfast run --no-work`, from the start of the process to its end."""
    command = python("holdfast", "run", pipeline, file, "--new", "--no-work")
    return measure.run_to_end([command], folder, settings(database, folder))


def work(
    database: Database,
    workers: int,
    folder: Path,
    pipeline: Path = NOOP,
    extra: Mapping[str, str] | None = None,
) -> Worked:
    """Processes the newest job with this many `holdfast work` processes."""
    job_id = database.newest_job()
    command = python("holdfast", "work", pipeline, "--job", job_id, "--until-idle")
    used = settings(database, folder) | dict(extra or {})
    watch = measure.run_to_end([command] * workers, folder, used)
    items, done = database.counts(job_id)
    if done != items or not items:
        raise RunFailed(f"job {job_id}: {done} of {items} items are DONE. {measure.tail(folder)}")
    return Worked(database.rate(job_id), watch)


def settings(database: Database, folder: Path) -> dict[str, str]:
    return {
        "HOLDFAST_DATABASE_URL": database.url,
        "HOLDFAST_DATA_DIR": str(folder / "data"),
        "BENCH_CONCURRENCY": "1",
    }


def fixed_concurrency(concurrency: int) -> dict[str, str]:
    return {"BENCH_CONCURRENCY": str(concurrency)}
