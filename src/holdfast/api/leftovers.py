"""What a killed server leaves half written: uploads that were arriving, exports under way."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from holdfast.api.dependencies import Parts
from holdfast.api.multipart import ARRIVING
from holdfast.tables.writers import UNFINISHED

#: Whatever still comes in or is written is touched all the time.
_UNTOUCHED_SECONDS = 86_400.0


async def clear_leftovers(parts: Parts) -> None:
    """Of any process: several may share the folder."""
    before = parts.clock.now().timestamp() - _UNTOUCHED_SECONDS
    await asyncio.to_thread(_clear, parts.files, before)


def _clear(folder: Path, before: float) -> None:
    passing = [*folder.glob(f"{ARRIVING}*"), *(folder / "exports").glob(f"{UNFINISHED}*")]
    for each in passing:
        if _touched_at(each) < before:
            shutil.rmtree(each, ignore_errors=True)


def _touched_at(folder: Path) -> float:
    try:
        return max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
    except OSError:
        return float("inf")  # somebody else is at it
