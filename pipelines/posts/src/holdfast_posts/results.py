"""Sends `analysis.finished` once for each batch, with the commit of its last outcome."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from holdfast.pipeline import Row, Tx
from holdfast_posts.options import PostsOptions

EVENT_TYPE = "analysis.finished"
_TASK_TYPE = "analyze_result"
_MOST_ITEMS = 10_000


class Item(NamedTuple):
    """The result for an item of a batch."""

    content_id: str | None
    status: str
    sentiment: str | None
    score: float | None
    impact_score: float | None
    error: str | None


async def send_finished(
    tx: Tx, options: PostsOptions, finished: Sequence[tuple[Row, Sequence[Item] | None]]
) -> None:
    """Sends messages about batches that are complete, and locked by this transaction; with their
    items, if all of them are known here."""
    if not options.publish_results:
        return
    for batch, known in finished:
        if batch["shadow"]:
            continue
        items = await _items(tx, batch) if known is None else known
        event_id = event_id_of(batch["batch_key"])
        body = finished_event(event_id, batch, items, _now(batch["now"]))
        headers = {"content-type": "application/json"}
        await tx.send(
            options.exchange, options.results_key, body, headers=headers, message_id=event_id
        )


async def _items(tx: Tx, batch: Row) -> list[Item]:
    params = {"batch_id": batch["id"], "limit": _MOST_ITEMS}
    rows = await tx.fetch("posts_items_of_batch", params)
    return [Item(*(row[name] for name in Item._fields)) for row in rows]


def event_id_of(batch_key: str) -> str:
    """Returns an id that is the same for each message about a batch, so that receivers can drop a
    second one."""
    return f"evt_{hashlib.sha256(f'{EVENT_TYPE} {batch_key}'.encode()).hexdigest()[:32]}"


def finished_event(event_id: str, batch: Row, items: Sequence[Item], now: str) -> dict[str, Any]:
    results = [
        {
            "content_id": item.content_id,
            "sentiment": item.sentiment,
            "sentiment_score": item.score,
            "impact_score": item.impact_score,
        }
        for item in items
        if item.status == "success"
    ]
    errors = [
        {"content_id": item.content_id, "error": item.error}
        for item in items
        if item.status != "success"
    ]
    return {
        "event_id": event_id,
        "event_type": EVENT_TYPE,
        "timestamp": now,
        "success": not any(item.status == "failed" for item in items),
        "payload": {
            "project_id": batch["project_id"],
            "job_id": batch["job_id"],
            "platform": batch["platform"],
            "task_type": _TASK_TYPE,
            "minio_path": batch["batch_key"],
            "batch_index": batch["batch_index"],
            "batch_size": batch["items_count"],
            "success_count": len(results),
            "error_count": len(errors),
            "results": results,
            "errors": errors,
        },
    }


def _now(now: Any) -> str:
    return now if isinstance(now, str) else now.isoformat().replace("+00:00", "Z")
