"""Waits until a server that was started as a process can be asked."""

from __future__ import annotations

import re
import subprocess
import time

import httpx2


def listening(process: subprocess.Popen[str]) -> str:
    """Where `holdfast api` listens, as it says itself, once it is ready."""
    assert process.stderr is not None
    found = None
    while found is None:
        line = process.stderr.readline()
        assert line, "it ended without listening"
        found = re.search(r"(http://\S+?)/ ", line)
    with httpx2.Client(base_url=found[1]) as client:
        while client.get("/readyz").status_code != 200:
            time.sleep(0.05)
    return found[1]
