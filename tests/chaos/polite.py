"""A pipeline that asks a server for each row."""

from __future__ import annotations

from typing import Any

from holdfast import pipeline
from holdfast.pipeline import Context


@pipeline(columns=["n"])
async def polite(row: dict[str, Any], ctx: Context) -> dict[str, Any]:
    await ctx.http.get(row["do"])
    return {"n": row["n"]}
