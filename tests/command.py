"""The command line as a real process, in an environment of its own.

`run` forks it from a server that has imported everything, which saves most of a second;
`start` starts it as a shell would.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.chaos.children import forked, holdfast

INHERITED = ("HOME", "PATH", "PYTHONPATH", "TMPDIR", "TZ")


@dataclass
class HoldfastCommand:
    """Runs `holdfast` with nothing of the tester's settings, on a given database."""

    database_url: str
    folder: Path
    #: what every command gets beside these, such as the broker of a fleet
    settings: Mapping[str, str] = field(default_factory=dict)
    _started: list[subprocess.Popen[str]] = field(default_factory=list)

    def run(
        self,
        *arguments: str | Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout: float = 60.0,
        stdin: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Runs to the end; the caller looks at exit code, stdout and stderr."""
        with TemporaryDirectory(prefix="holdfast-command-") as folder:
            ends = [Path(folder, name) for name in ("in", "out", "err")]
            ends[0].write_text(stdin or "")
            words = [str(word) for word in arguments]
            place = cwd or self.folder
            child = forked(place, *ends, self.environment(env), holdfast, (words,))
            try:
                code = child.wait(timeout)
            finally:
                child.close()
            said = [end.read_text(errors="replace") for end in ends[1:]]
        return subprocess.CompletedProcess(["holdfast", *words], code, *said)

    def start(
        self,
        *arguments: str | Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        open_files: int | None = None,
    ) -> subprocess.Popen[str]:
        """Starts a process to signal or kill; whatever still runs at the test's end is killed.
        `open_files` is its RLIMIT_NOFILE."""
        limit = [] if open_files is None else ["prlimit", f"--nofile={open_files}"]
        process = subprocess.Popen(
            limit + command_line(arguments),
            env=self.environment(env),
            cwd=cwd or self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._started.append(process)
        return process

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        return {
            **inherited,
            "LC_ALL": "C.UTF-8",
            "COLUMNS": "200",
            "NO_COLOR": "1",
            "HOLDFAST_DATABASE_URL": self.database_url,
            "HOLDFAST_DATA_DIR": str(self.folder / ".holdfast"),
            **self.settings,
            **(extra or {}),
        }

    def close(self) -> None:
        for process in self._started:
            process.kill()
            process.communicate()


def command_line(arguments: tuple[str | Path, ...]) -> list[str]:
    # -P: as the installed program, it does not import from the folder it is run in.
    return [sys.executable, "-P", "-m", "holdfast", *map(str, arguments)]
