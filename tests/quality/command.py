"""`python -m bench.quality`, as a developer types it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def measured(
    *words: str | Path, settings: dict[str, str] | None = None, timeout: float = 120
) -> subprocess.CompletedProcess[str]:
    """Sets keep their order from run to run, and nothing of the tester's settings counts."""
    return subprocess.run(
        [sys.executable, "-m", "bench.quality", *map(str, words)],
        cwd=ROOT,
        env={"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "COLUMNS": "200", **(settings or {})},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
