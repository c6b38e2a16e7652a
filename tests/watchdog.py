"""Ends a private server if the tests die before they can."""

from __future__ import annotations

import subprocess
from pathlib import Path

#: Reads until the tests' end of the pipe closes, which happens however they end.
_WATCH = """
cat
kill -"$1" "$2"
for wait in $(seq 100); do kill -0 "$2" && sleep 0.1; done
eval "$4"
rm -rf -- "$3"
"""


class Watchdog:
    """Signals a server, runs `afterwards` and removes its folder, unless dismissed first."""

    def __init__(self, process_id: int, folder: Path, signal: str, afterwards: str = ":") -> None:
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _WATCH, "watchdog", signal, str(process_id), str(folder), afterwards],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )

    def dismiss(self) -> None:
        """Before the server is stopped: its process id may be given to another."""
        self._process.kill()
        self._process.wait()
        if self._process.stdin:
            self._process.stdin.close()
