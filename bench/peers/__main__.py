"""Runs one side of one peer: `python -m bench.peers enqueue|work|kept PEER [COUNT]`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib import import_module

KEPT_WITHIN_SECONDS = 5.0


def main(verb: str, peer: str, count: int = 0) -> None:
    module = import_module(f"bench.peers.{peer}")
    if verb == "enqueue":
        module.enqueue(count)
    elif verb == "work":
        module.work()
    else:
        print(_settled(module.kept, count))


def _settled(kept: Callable[[], int], count: int) -> int:
    deadline = time.monotonic() + KEPT_WITHIN_SECONDS
    found = kept()
    while found < count and time.monotonic() < deadline:
        time.sleep(0.1)
        found = kept()
    return found


main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0)
