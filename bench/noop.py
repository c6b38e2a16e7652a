"""The pipeline of the no-op scenarios: decode, one coroutine call, a small result."""

from typing import Any

from holdfast import pipeline


@pipeline(columns=["id", "ok"])  # type: ignore[untyped-decorator]
async def noop(row: dict[str, str], ctx: Any) -> dict[str, object]:
    return {"id": row["id"], "ok": True, "title_len": len(row["title"])}
