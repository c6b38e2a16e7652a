"""The pipeline whose items note when they were begun, one line each in the file BENCH_NOTES."""

import os
import time
from typing import Any

from holdfast import pipeline

NOTES = os.environ["BENCH_NOTES"]


@pipeline(columns=["number"])  # type: ignore[untyped-decorator]
async def noting(row: dict[str, str], ctx: Any) -> dict[str, object]:
    begun_at = time.monotonic()
    with open(NOTES, "a") as notes:
        notes.write(f"{row['number']} {begun_at}\n")
    return {"number": row["number"]}
