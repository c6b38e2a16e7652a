"""A municipality's site: a SQLite file as the real ones have it, and a real Datasette before it."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import sqlite3
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import pytest

from tests.ports import free_port
from tests.watchdog import Watchdog

ROOT = Path(__file__).resolve().parents[3]
TABLES = ("agendas", "minutes")
#: For what must hold on both databases with each generation of Datasette.
each_generation = pytest.mark.parametrize(
    "datasette", [0, 1], ids=["datasette-0.65", "datasette-1.0"], indirect=True
)
PATIENCE_SECONDS = 180.0
MISSING = (
    "There is no {path}. Run `make test`, which installs it from requirements/{name}.txt, or name "
    "another Datasette in {variable}."
)
#: As the real sites are set: the newest first, which makes an unsorted request a sorted one.
METADATA = {
    "databases": {
        "meetings": {
            "tables": {name: {"sort_desc": "date", "facets": ["meeting"]} for name in TABLES}
        }
    }
}


@dataclass(frozen=True)
class Row:
    meeting: Any
    date: Any
    page: Any
    text: Any
    page_image: Any = None
    id: str = ""

    @property
    def upstream_id(self) -> str:
        """A hash of the content, without the municipality, as the real ones are."""
        if self.id:
            return self.id
        content = [self.meeting, self.date, self.page, self.text]
        return hashlib.sha256(json.dumps(content, default=repr).encode()).hexdigest()[:12]

    def values(self) -> tuple[Any, ...]:
        image = self.page_image or f"/{self.meeting}/{self.date}/{self.page}.png"
        return (self.upstream_id, self.meeting, self.date, self.page, self.text, image)


def generated(count: int, seed: int = 1, today: date | None = None) -> list[Row]:
    """Rows with many equal dates; a quarter of them around today."""
    rng = random.Random(seed)
    today = today or datetime.now(UTC).date()
    old = [date(2001, 1, 1) + timedelta(days=7 * week) for week in range(40)]
    recent = [today + timedelta(days=day) for day in range(-150, 150, 30)]
    meetings = ["CityCouncil", "PlanningCommission", "Parks"]
    rows = []
    for number in range(count):
        day = rng.choice(recent if number % 4 == 0 else old).isoformat()
        text = f"Page {number} of seed {seed}: {' '.join(rng.choices(_WORDS, k=12))}"
        rows.append(Row(rng.choice(meetings), day, number, text))
    return rows


_WORDS = [
    "budget",
    "zoning",
    "motion",
    "carried",
    "bridge",
    "library",
    "sewer",
    "park",
    "hearing",
    "permit",
    "lease",
    "audit",
]


class Site:
    """The file behind a site, changed as its owner changes it."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.reset()

    def reset(self) -> None:
        for table in TABLES:
            self.drop(table)
            self.create(table)

    def create(self, table: str, columns: str | None = None) -> None:
        columns = columns or (
            "id text primary key, meeting text, date text, page integer, text text, page_image text"
        )
        self.execute(f"create table {table} ({columns})")

    def drop(self, table: str) -> None:
        self.execute(f"drop table if exists {table}")

    def add(self, table: str, rows: Sequence[Row]) -> None:
        sql = f"insert into {table} values (?, ?, ?, ?, ?, ?)"
        with closing(sqlite3.connect(self.file, timeout=30)) as database, database:
            database.executemany(sql, [row.values() for row in rows])

    def remove(self, table: str, *rows: Row) -> None:
        for row in rows:
            self.execute(f"delete from {table} where id = ?", row.upstream_id)

    def replace(self, table: str, row: Row, **changes: Any) -> Row:
        """Changes a row as the site's own pipeline does: the old id goes, a new one comes."""
        changed = replace(row, id="", **changes)
        self.remove(table, row)
        self.add(table, [changed])
        return changed

    def execute(self, sql: str, *values: Any) -> None:
        with closing(sqlite3.connect(self.file, timeout=30)) as database, database:
            database.execute(sql, values)

    def rows(self, table: str) -> set[tuple[Any, ...]]:
        """What is there now: meeting, date, page, text and id of each row."""
        with closing(sqlite3.connect(self.file, timeout=30)) as database:
            sql = f"select meeting, date, page, text, id from {table}"
            return set(database.execute(sql).fetchall())


class Datasette:
    """One server process on loopback, of the wanted generation (0 or 1)."""

    def __init__(self, generation: int, *settings: str) -> None:
        self.generation = generation
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-datasette-"))
        self.port = free_port()
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._watchdog: Watchdog | None = None
        self.site = Site(self.folder / "meetings.db")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        (self.folder / "metadata.json").write_text(json.dumps(METADATA))
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self) -> None:
        command = [str(find_datasette(self.generation)), "serve", str(self.site.file)]
        command += ["-p", str(self.port), "-h", "127.0.0.1"]
        command += ["-m", str(self.folder / "metadata.json"), *self._settings]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder
            )
        self._watchdog = Watchdog(self._process.pid, self.folder, "TERM")
        self._wait_until_ready()

    def stop(self) -> None:
        process, self._process = self._process, None
        watchdog, self._watchdog = self._watchdog, None
        if watchdog is not None:
            watchdog.dismiss()
        if process is not None:
            process.terminate()
            process.wait(PATIENCE_SECONDS)

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            assert self._process is not None
            if self._process.poll() is not None:
                break
            try:
                urllib.request.urlopen(f"{self.url}/-/versions.json", timeout=5).close()
                return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        log = (self.folder / "server.log").read_text(errors="replace")
        raise RuntimeError(f"Datasette did not start:\n{log[-2000:]}")


def find_datasette(generation: int) -> Path:
    variable = f"DATASETTE_{generation}"
    name = f"datasette-{generation}"
    path = Path(os.environ.get(variable) or ROOT / ".venv" / name / "bin" / "datasette")
    if not path.exists():
        raise RuntimeError(MISSING.format(path=path, name=name, variable=variable))
    return path


def batches(rows: Sequence[Row], size: int) -> Iterator[Sequence[Row]]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]
