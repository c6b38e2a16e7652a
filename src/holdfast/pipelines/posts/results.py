"""`analysis.finished`: sent once for each batch, with the commit of its last outcome."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from holdfast.pipeline import Row, Tx
from holdfast.pipelines.posts.options import PostsOptions

EVENT_TYPE = "analysis.finished"
_TASK_TYPE = "analyze_result"
_MOST_ITEMS = 10_000


async def send_finished(tx: Tx, options: PostsOptions, batch_ids: Sequence[int]) -> None:
    """The batches must be complete, and held by this transaction."""
    if not options.publish_results or not batch_ids:
        return
    for batch in await tx.fetch("posts_hold_batches", {"ids": sorted(batch_ids)}):
        if batch["shadow"]:
            continue
        params = {"batch_id": batch["id"], "limit": _MOST_ITEMS}
        items = await tx.fetch("posts_items_of_batch", params)
        event_id = event_id_of(batch["batch_key"])
        body = finished_event(event_id, batch, items, _now(await tx.fetch("posts_now")))
        headers = {"content-type": "application/json"}
        await tx.send(
            options.exchange, options.results_key, body, headers=headers, message_id=event_id
        )


def event_id_of(batch_key: str) -> str:
    """The same for each message about a batch, so that receivers can drop a second one."""
    return f"evt_{hashlib.sha256(f'{EVENT_TYPE} {batch_key}'.encode()).hexdigest()[:32]}"


def finished_event(event_id: str, batch: Row, items: Sequence[Row], now: str) -> dict[str, Any]:
    results = [
        {
            "content_id": item["content_id"],
            "sentiment": item["sentiment"],
            "sentiment_score": item["score"],
            "impact_score": item["impact_score"],
        }
        for item in items
        if item["status"] == "success"
    ]
    errors = [
        {"content_id": item["content_id"], "error": item["error"]}
        for item in items
        if item["status"] != "success"
    ]
    return {
        "event_id": event_id,
        "event_type": EVENT_TYPE,
        "timestamp": now,
        "success": not any(item["status"] == "failed" for item in items),
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


def _now(rows: Sequence[Row]) -> str:
    now = rows[0]["now"]
    return now if isinstance(now, str) else now.isoformat().replace("+00:00", "Z")
