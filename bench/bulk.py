"""A bulk job whose items take BENCH_ITEM_SECONDS, 64 at once; 0: no work at all."""

import asyncio
import os
from pathlib import Path
from typing import Any

from holdfast import pipeline

SECONDS = float(os.environ.get("BENCH_ITEM_SECONDS", "0"))
BEGUN = os.environ.get("BENCH_BULK_BEGUN", "")
AT_ONCE = 64


class Process:
    began = False


@pipeline(columns=["id", "ok"], min_concurrency=AT_ONCE, max_concurrency=AT_ONCE)  # type: ignore[untyped-decorator]
async def bulk(row: dict[str, str], ctx: Any) -> dict[str, object]:
    if not Process.began:
        Process.began = True
        Path(BEGUN, str(os.getpid())).touch()
    if SECONDS:
        await asyncio.sleep(SECONDS)
    return {"id": row["id"], "ok": True, "title_len": len(row["title"])}
