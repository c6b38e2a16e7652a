"""A job, the processes that work on it and what must be true of it in the end."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import Any

import asyncpg

from holdfast.urls import sqlite_file
from tests.chaos.children import Child, Children
from tests.command import HoldfastCommand
from tests.names import whole_names

DEEDS = Path(__file__).with_name("deeds.py")
PATIENCE_SECONDS = 180.0

#: Short times, so that a test sees several leases, sweeps and retries in a second.
HASTE = {
    "HOLDFAST_LOCK_FLOOR_MS": "2000",
    "HOLDFAST_LOCK_CAP_MS": "2000",
    "HOLDFAST_SWEEP_SECONDS": "0.2",
    "HOLDFAST_FLUSH_SECONDS": "0.05",
    "HOLDFAST_RETRY_BASE_SECONDS": "0.05",
    "HOLDFAST_WORKERS": "1",
}


class Scene:
    def __init__(
        self,
        database_url: str,
        folder: Path,
        children: Children,
        fleet: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`fleet`: the settings that let processes hear messages; without, they poll."""
        self.folder = folder
        self.witness = folder / "witness.txt"
        self.children = children
        self.url = database_url
        self.is_fleet = bool(fleet)
        self._command = HoldfastCommand(database_url, folder, fleet)
        self._tables = 0

    def table(self, deeds: Iterable[str]) -> Path:
        """A file with a row for each deed."""
        self._tables += 1
        path = self.folder / f"rows-{self._tables}.csv"
        lines = [f"{number},{deed}" for number, deed in enumerate(deeds, 1)]
        path.write_text("\n".join(["n,do", *lines]) + "\n")
        return path

    def environment(self, more: dict[str, str]) -> dict[str, str]:
        return self._command.environment({**HASTE, "CHAOS_WITNESS": str(self.witness), **more})

    def start(self, *arguments: str | Path, **more: str) -> Child:
        return self.children.holdfast(list(map(str, arguments)), self.environment(more))

    def run(self, *arguments: str | Path, **more: str) -> Child:
        """Runs to the end; the caller looks at the exit code."""
        child = self.start(*arguments, **more)
        child.wait(PATIENCE_SECONDS)
        return child

    def take_in(self, deeds: Iterable[str], pipeline: str = "deeds") -> int:
        """A job whose rows are all kept, and of which none is worked."""
        done = self.run("run", f"{DEEDS}:{pipeline}", self.table(deeds), "--no-work", "--new")
        assert done.returncode == 0, done.said()
        found = re.search(r"Job (\d+)", done.said())
        assert found, done.said()
        return int(found[1])

    def start_worker(self, job_id: int, **more: str) -> Child:
        return self.start(*self.work_command(job_id), **more)

    def work_command(self, job_id: int) -> list[str]:
        """A worker for one job would poll: one of a fleet takes what it is sent."""
        only = [] if self.is_fleet else ["--job", str(job_id)]
        return ["work", str(DEEDS), *only, "--until-idle"]

    def show(self, job_id: int) -> dict[str, Any]:
        shown = self.run("show", str(job_id), "--verify", "--json")
        assert shown.returncode == 0, shown.said()
        told: dict[str, Any] = json.loads(shown.said())
        return told

    def assert_exact(self, job_id: int, **counts: int) -> dict[str, Any]:
        """The job is DONE, its counters equal its rows, and these are the counts."""
        told = self.show(job_id)
        assert told["problems"] == []
        assert told["state"] == "DONE", told
        expected = {"done": 0, "not_found": 0, "skipped": 0, "error": 0, "open": 0} | counts
        assert {name: told["counters"][name] for name in expected} == expected
        assert told["counters"]["accepted"] == sum(expected.values())
        return told

    def dead_letters(self) -> list[dict[str, Any]]:
        listed = self.run("dead", "list", "--json")
        assert listed.returncode == 0, listed.said()
        letters: list[dict[str, Any]] = json.loads(listed.said())
        return letters

    def dead_items(self) -> list[dict[str, Any]]:
        """A message that was with three workers when they were killed is a dead letter too, but
        of any item."""
        return [letter for letter in self.dead_letters() if letter["kind"] == "item"]

    def fetch(self, query: str) -> list[Sequence[Any]]:
        """Rows of the database, read while others work on it. Asked again and again
        while something is waited for, so it opens no more than it needs."""
        file, query = sqlite_file(self.url), whole_names(self.url, query)
        if file is None:
            return asyncio.run(_fetch(self.url, query))
        with closing(sqlite3.connect(file, timeout=PATIENCE_SECONDS)) as database:
            return database.execute(query).fetchall()

    def results(self, job_id: int) -> dict[int, dict[str, Any]]:
        """What each item that is DONE gave."""
        rows = self.fetch(f"select seq, result from outcomes where job_id = {job_id}")
        return {row[0]: json.loads(row[1]) for row in rows if row[1] is not None}

    def assert_saved_once(self, count: int) -> None:
        """The pipeline's own rows: one for each settled item, in the same transaction."""
        (row,) = self.fetch("select count(*), count(distinct seq) from saved")
        assert tuple(row) == (count, count), tuple(row)

    def witnessed(self) -> Counter[int]:
        """How often each item was started."""
        return Counter(seq for seq, _ in self._witness_lines())

    def witnesses(self) -> list[int]:
        """The process that began it, for each start of an item."""
        return [pid for _, pid in self._witness_lines()]

    def _witness_lines(self) -> list[tuple[int, int]]:
        if not self.witness.exists():
            return []
        lines = [line.split() for line in self.witness.read_text().splitlines()]
        return [(int(seq), int(pid)) for seq, pid in lines]

    def wait_for_starts(self, more: int) -> None:
        """Waits until this many more items were started."""
        before = sum(self.witnessed().values())
        wait_until(lambda: sum(self.witnessed().values()) >= before + more, "items start")


async def _fetch(url: str, query: str) -> list[Sequence[Any]]:
    connection = await asyncpg.connect(url)
    try:
        rows: list[Sequence[Any]] = await connection.fetch(query)
        return rows
    finally:
        await connection.close()


def wait_until(
    condition: Callable[[], object], why: str, seconds: float = PATIENCE_SECONDS
) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds:g} s in vain: {why}"
        time.sleep(0.05)


def finish(child: Child, seconds: float = PATIENCE_SECONDS) -> str:
    """Waits for a process that must end well; returns what it said."""
    child.wait(seconds)
    assert child.returncode == 0, (child.returncode, child.said())
    return child.said()
