"""A job, the processes that work on it and what must be true of it in the end."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.command import HoldfastCommand

DEEDS = Path(__file__).with_name("deeds.py")
PATIENCE_SECONDS = 60.0

#: Short times, so that a test sees several leases, sweeps and retries in a second.
HASTE = {
    "HOLDFAST_LOCK_FLOOR_MS": "1000",
    "HOLDFAST_SWEEP_SECONDS": "0.2",
    "HOLDFAST_FLUSH_MS": "50",
    "HOLDFAST_RETRY_SOON_BASE_SECONDS": "0.05",
    "HOLDFAST_RETRY_SOON_CAP_SECONDS": "0.2",
    "HOLDFAST_STALE_STREAM_SECONDS": "2",
}


class Scene:
    def __init__(self, command: HoldfastCommand, folder: Path) -> None:
        self.command = command
        self.folder = folder
        self.witness = folder / "witness.txt"
        self._tables = 0

    def environment(self, **more: str) -> dict[str, str]:
        return {**HASTE, "CHAOS_WITNESS": str(self.witness), **more}

    def table(self, deeds: Iterable[str]) -> Path:
        """A file with a row for each deed."""
        self._tables += 1
        path = self.folder / f"rows-{self._tables}.csv"
        lines = [f"{number},{deed}" for number, deed in enumerate(deeds, 1)]
        path.write_text("\n".join(["n,do", *lines]) + "\n")
        return path

    def run(
        self, *arguments: str | Path, timeout: float = PATIENCE_SECONDS, **more: str
    ) -> subprocess.CompletedProcess[str]:
        return self.command.run(*arguments, env=self.environment(**more), timeout=timeout)

    def start(self, *arguments: str | Path, **more: str) -> subprocess.Popen[str]:
        return self.command.start(*arguments, env=self.environment(**more))

    def take_in(self, deeds: Iterable[str], pipeline: str = "deeds") -> int:
        """A job whose rows are all kept, and of which none is worked."""
        done = self.run("run", f"{DEEDS}:{pipeline}", self.table(deeds), "--no-work")
        assert done.returncode == 0, done.stderr
        found = re.search(r"Job (\d+)", done.stderr)
        assert found, done.stderr
        return int(found[1])

    def start_worker(self, job_id: int, **more: str) -> subprocess.Popen[str]:
        return self.start("work", DEEDS, "--job", str(job_id), "--until-idle", **more)

    def show(self, job_id: int) -> dict[str, Any]:
        shown = self.run("show", str(job_id), "--verify", "--json")
        assert shown.returncode == 0, shown.stdout + shown.stderr
        told: dict[str, Any] = json.loads(shown.stdout)
        return told

    def items(self, job_id: int) -> list[dict[str, Any]]:
        shown = self.run("items", str(job_id), "--json", "--limit", "0")
        assert shown.returncode == 0, shown.stderr
        told: list[dict[str, Any]] = json.loads(shown.stdout)
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

    def witnessed(self) -> Counter[int]:
        """How often each item was started."""
        if not self.witness.exists():
            return Counter()
        return Counter(int(line.split()[0]) for line in self.witness.read_text().splitlines())


def wait_until(
    condition: Callable[[], object], why: str, seconds: float = PATIENCE_SECONDS
) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds:g} s in vain: {why}"
        time.sleep(0.05)


def finish(process: subprocess.Popen[str], seconds: float = PATIENCE_SECONDS) -> str:
    """Waits for a process that must end well; returns what it said."""
    out, err = process.communicate(timeout=seconds)
    assert process.returncode == 0, out + err
    return out + err
