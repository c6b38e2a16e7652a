"""A user's folder: pipelines and files in it, and the commands given there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import psutil

from tests.command import HoldfastCommand

Finished = subprocess.CompletedProcess[str]

#: Small and fast, so that a test takes seconds; nothing about correctness depends on it.
QUICK = {
    "HOLDFAST_WORKERS": "1",
    "HOLDFAST_SWEEP_SECONDS": "0.2",
    "HOLDFAST_RETRY_BASE_SECONDS": "0.05",
    "HOLDFAST_ALLOW_PRIVATE_ADDRESSES": "true",
}

UPPER = """
    from holdfast import pipeline

    @pipeline(columns=["title"])
    async def upper(row, ctx):
        return {"title": row["title"].upper()}
"""

#: Takes as long for an item as the file `speed` beside it says, in seconds.
SLOW = """
    import asyncio
    from pathlib import Path
    from holdfast import pipeline

    SPEED = Path(__file__).with_name("speed")

    @pipeline(columns=["title"])
    async def slow(row, ctx):
        with Path(__file__).with_name("started").open("a") as file:
            file.write(row["title"] + "\\n")
        while (seconds := float(SPEED.read_text() or 0)) > 0:
            await asyncio.sleep(min(seconds, 0.05))
            if seconds < 1:
                break
        return {"title": row["title"].upper()}
"""


class Desk:
    def __init__(self, command: HoldfastCommand) -> None:
        self.command = command
        self.folder = command.folder

    def write(self, name: str, text: str) -> Path:
        """A file with this text; the margin that the test's own indentation gives it is taken
        off."""
        path = self.folder / name
        path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
        return path

    def write_rows(self, name: str, count: int) -> Path:
        return self.write(name, "id,title\n" + "".join(f"{n:05},t{n}\n" for n in range(count)))

    def holdfast(
        self, *arguments: str | Path, env: Mapping[str, str] | None = None, timeout: float = 60
    ) -> Finished:
        return self.command.run(*arguments, env={**QUICK, **(env or {})}, timeout=timeout)

    def succeed(self, *arguments: str | Path, env: Mapping[str, str] | None = None) -> str:
        """What a command that has to work prints."""
        done = self.holdfast(*arguments, env=env)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def fail(
        self, *arguments: str | Path, code: int = 1, env: Mapping[str, str] | None = None
    ) -> str:
        """What a command says that has to fail, in words and not in a stack trace."""
        done = self.holdfast(*arguments, env=env)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        assert done.stderr.strip()
        return done.stderr

    def json(self, *arguments: str | Path) -> Any:
        return json.loads(self.succeed(*arguments, "--json"))

    def start(self, *arguments: str | Path, env: Mapping[str, str] | None = None) -> Any:
        return self.command.start(*arguments, env={**QUICK, **(env or {})})

    def show(self, job_id: int = 1) -> Any:
        return self.json("show", str(job_id), "--verify")

    def show_if_unleased(self, job_id: int = 1) -> Any:
        """The job, when no worker holds anything of it any more."""
        told = self.show(job_id)
        return told if all(found["worker"] is None for found in told["ranges"]) else None

    def reason(self, job_id: int = 1) -> Any:
        why = self.show(job_id)["why"]
        return why and why["kind"]

    def counters(self, job_id: int = 1) -> dict[str, int]:
        told = self.show(job_id)
        assert told["problems"] == []
        counters: dict[str, int] = told["counters"]
        return counters

    def statuses(self, job_id: int = 1) -> list[str]:
        return [item["status"] for item in self.json("items", str(job_id), "--limit", "0")]

    def results(self, job_id: int = 1) -> list[Any]:
        return [item["result"] for item in self.json("items", str(job_id), "--limit", "0")]

    def started(self) -> list[str]:
        """The titles that the pipeline SLOW began, each time it did."""
        path = self.folder / "started"
        return path.read_text().split() if path.exists() else []

    def started_since(self, before: list[str]) -> Callable[[], bool]:
        return lambda: len(self.started()) > len(before)


def wait_until(condition: Callable[[], Any], seconds: float = 180) -> Any:
    """Asks again and again; the time is only so long that a hang becomes a failure."""
    give_up_at = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < give_up_at, "waited in vain"
        time.sleep(0.1)
    return found


def stop(process: subprocess.Popen[str], number: signal.Signals) -> tuple[int, str]:
    """Signals a process as a terminal or a service manager does: exit code and last words."""
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    return process.returncode, said


def kill_all(process: subprocess.Popen[str]) -> None:
    """kill -9 for the process and everything it started, all at one moment."""
    family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    for member in family:
        os.kill(member.pid, signal.SIGSTOP)
    for member in family:
        os.kill(member.pid, signal.SIGKILL)
    psutil.wait_procs(family, timeout=10)
    process.communicate()
