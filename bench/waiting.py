"""The pipeline whose items wait 10 ms, at the concurrency that BENCH_CONCURRENCY fixes."""

import asyncio
import os
from typing import Any

from holdfast import pipeline

CONCURRENCY = int(os.environ["BENCH_CONCURRENCY"])


@pipeline(  # type: ignore[untyped-decorator]
    columns=["id", "ok"], min_concurrency=CONCURRENCY, max_concurrency=CONCURRENCY
)
async def waiting(row: dict[str, str], ctx: Any) -> dict[str, object]:
    await asyncio.sleep(0.010)
    return {"id": row["id"], "ok": True, "title_len": len(row["title"])}
