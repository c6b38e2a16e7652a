"""Exports on standard output."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from holdfast.console import Console
from holdfast.console.grid import Chosen, write_export
from holdfast.model import Job


async def print_export(
    console: Console, job: Job, format: str, chosen: Chosen, with_input: bool = False
) -> list[str]:
    """The same file as `write_export` makes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"export.{format}"
        notes = await write_export(console, job, path, format, chosen, with_input)
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                sys.stdout.buffer.write(block)
    sys.stdout.flush()
    return notes
