"""Writes what came of items, in the transaction that settles them: posts, errors of crawlers, the
counts of their batches, and what their batches send when they are complete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

from holdfast.model import ItemStatus, Json
from holdfast.pipeline import Row, Settled, Tx
from holdfast.pipelines.posts import results
from holdfast.pipelines.posts.metrics import PostsMetrics, platform_label
from holdfast.pipelines.posts.options import PostsOptions

_TEXT = 2000
_COMPARED = ("overall_sentiment", "primary_intent", "risk_level", "impact_score", "project_id")
SUCCESS, ERROR, FAILED = "success", "error", "failed"


@dataclass(slots=True)
class _Rows:
    """What a settlement writes."""

    items: dict[tuple[int, int], tuple[Any, ...]] = field(default_factory=dict)
    posts: dict[tuple[str, str, str], tuple[Any, ...]] = field(default_factory=dict)
    versions: dict[tuple[str, str, str], tuple[str, int]] = field(default_factory=dict)
    errors: list[tuple[Any, ...]] = field(default_factory=list)
    shadows: dict[tuple[str, str, str], tuple[int, Mapping[str, Any]]] = field(default_factory=dict)
    days: set[tuple[str, str]] = field(default_factory=set)


async def save(
    tx: Tx, settled: Sequence[Settled], options: PostsOptions, metrics: PostsMetrics | None
) -> None:
    ids = sorted({int(item.row["batch"]) for item in settled})
    held = await tx.fetch("posts_hold_batches", {"ids": ids})
    batches = {int(row["id"]): row for row in held}
    rows = _Rows()
    for item in settled:
        batch = batches.get(int(item.row["batch"]))
        if batch is not None:  # deleted since, by a person
            _collect(rows, item, batch)
    await _write(tx, rows)
    await _compare(tx, rows, metrics)
    finished = await _count(tx, rows, batches)
    await results.send_finished(tx, options, finished)
    if metrics is not None:
        _measure(metrics, settled, batches, finished)


def _collect(rows: _Rows, item: Settled, batch: Row) -> None:
    place = (int(item.row["batch"]), int(item.row["position"]))
    effects: Json | None = item.effects if item.status is ItemStatus.DONE else None
    if effects is None:
        error = f"{item.code}: {item.message}"[:500]
        rows.items[place] = (*place, None, FAILED, None, None, None, error)
        return
    post, analysis = effects["post"], effects["analysis"]
    if post["error"] is not None and not batch["shadow"]:
        rows.errors.append(_error_row(post, batch, effects["at"]))
        rows.days.add((batch["scope"], effects["at"][:10]))
    if analysis is None:
        rows.items[place] = (
            *place,
            post["content_id"],
            ERROR,
            None,
            None,
            None,
            post["error_code"],
        )
        return
    sentiment, score = analysis["overall_sentiment"], analysis["sentiment_score"]
    impact = analysis["impact_score"]
    rows.items[place] = (*place, post["content_id"], SUCCESS, sentiment, score, impact, None)
    key = (batch["scope"], post["platform"], post["content_id"])
    if batch["shadow"]:
        rows.shadows[key] = (place[0], {**analysis, "project_id": batch["project_id"]})
        return
    version = (post["crawled_at"] or effects["at"], place[0])
    if version >= rows.versions.get(key, ("", 0)):
        rows.versions[key] = version
        rows.posts[key] = _post_row(key, effects, batch, version[0])


def _post_row(
    key: tuple[str, str, str], effects: Json, batch: Row, version_at: str
) -> tuple[Any, ...]:
    post, found, author = effects["post"], effects["analysis"], effects["post"]["author"]
    error = post["error"] or {}
    return (
        *key,
        batch["project_id"],
        batch["job_id"] or post["job_id"],
        int(batch["id"]),
        batch["batch_index"],
        batch["task_type"] or post["task_type"],
        post["keyword_source"] or batch["keyword"],
        post["pipeline_version"],
        post["crawled_at"],
        version_at,
        post["fetch_status"],
        error.get("message"),
        post["error_code"],
        _json(error.get("details")),
        post["permalink"],
        author["id"],
        author["name"] or author["username"],
        (post["text"] or "")[:_TEXT] or None,
        found["language"],
        post["published_at"],
        day_of(post, effects["at"]),
        found["overall_sentiment"],
        found["sentiment_score"],
        found["sentiment_confidence"],
        _json(found["sentiment_probabilities"]),
        found["not_analysed"],
        found["primary_intent"],
        found["intent_confidence"],
        found["impact_score"],
        found["risk_level"],
        _bit(found["is_viral"]),
        _bit(found["is_kol"]),
        _json(found["impact_breakdown"]),
        _json(found["aspects_breakdown"]),
        _json(found["keywords"]),
        post["views"],
        post["likes"],
        post["comments_count"],
        post["shares"],
        post["saves"],
        author["followers"],
        effects["milliseconds"],
        found["model_version"],
    )


def day_of(post: Json, at: str) -> str:
    """The day that a post counts for, in UTC: of its publication, or of its crawl."""
    day: str = post["published_at"] or post["crawled_at"] or at
    return day[:10]


def _error_row(post: Json, batch: Row, at: str) -> tuple[Any, ...]:
    error = post["error"]
    return (
        post["content_id"],
        batch["scope"],
        batch["project_id"],
        batch["job_id"] or post["job_id"] or "",
        post["platform"],
        batch["batch_key"],
        error["code"],
        error["category"],
        error["retry"],
        error["message"],
        _json(error["details"]),
        post["permalink"],
        at[:10],
    )


async def _write(tx: Tx, rows: _Rows) -> None:
    """In the order of their keys: two settlements that share some must not wait for each other."""
    if rows.posts:
        keys = sorted(rows.posts)
        rows.days.update((scope, day) for scope, day in await tx.take_many("posts_days_of", keys))
        await tx.take_many("posts_save", [rows.posts[key] for key in keys])
        rows.days.update((row[0], row[22]) for row in rows.posts.values())
    if rows.errors:
        await tx.take_many("posts_add_errors", sorted(rows.errors, key=repr))
    if rows.days:
        await tx.take_many("posts_change_days", sorted(rows.days))


async def _compare(tx: Tx, rows: _Rows, metrics: PostsMetrics | None) -> None:
    """Shadow mode: what this way would have stored, beside what the other way has stored."""
    if not rows.shadows:
        return
    found = await tx.take_many("posts_stored", sorted(rows.shadows))
    stored = {(row[0], row[1], row[2]): row for row in found}
    differences: list[tuple[Any, ...]] = []
    for key, (batch_id, shadow) in sorted(rows.shadows.items()):
        row = stored.get(key)
        if row is None:
            differences.append((*key, "presence", None, "present", batch_id))
            continue
        differences += [
            (*key, name, _text(row[name]), _text(shadow[name]), batch_id)
            for name in _COMPARED
            if _text(row[name]) != _text(shadow[name])
        ]
    if differences:
        await tx.take_many("posts_add_differences", differences)
    if metrics is not None:
        for difference in differences:
            metrics.differences.labels(difference[3]).inc()


async def _count(tx: Tx, rows: _Rows, batches: Mapping[int, Row]) -> list[int]:
    """Counts the items of the batches again; returns those that are complete now."""
    if not rows.items:
        return []
    await tx.take_many("posts_add_items", [rows.items[place] for place in sorted(rows.items)])
    ids = sorted({batch_id for batch_id, _ in rows.items})
    counts = {batch_id: dict.fromkeys((SUCCESS, ERROR, FAILED), 0) for batch_id in ids}
    for row in await tx.fetch("posts_count_items", {"ids": ids}):
        counts[int(row["batch_id"])][row["status"]] = int(row["items"])
    await tx.take_many(
        "posts_set_counts",
        [(number, found[SUCCESS], found[ERROR], found[FAILED]) for number, found in counts.items()],
    )
    return [
        number
        for number, found in counts.items()
        if sum(found.values()) >= batches[number]["items_count"]
        and batches[number]["state"] == "OPEN"
    ]


def _measure(
    metrics: PostsMetrics,
    settled: Sequence[Settled],
    batches: Mapping[int, Row],
    finished: Sequence[int],
) -> None:
    for item in settled:
        effects: Json | None = item.effects if item.status is ItemStatus.DONE else None
        if effects is None:
            platform = platform_label(item.row.get("platform"))
            metrics.items.labels(platform, FAILED).inc()
            continue
        post = effects["post"]
        status = ERROR if effects["analysis"] is None else SUCCESS
        metrics.items.labels(platform_label(post["platform"]), status).inc()
        metrics.warnings.labels("item").inc(len(post["warnings"]))
        if post["error"] is not None:
            metrics.error(post["error"]["code"], post["error"]["category"])
    now = max((item.effects["settled_at"] for item in settled if item.effects), default=None)
    for number in finished:
        batch = batches[number]
        begun = _instant(batch["sent_at"] or batch["received_at"])
        if now is not None:
            seconds = max(0.0, (now - begun).total_seconds())
            metrics.batch_seconds.labels(platform_label(batch["platform"])).observe(seconds)


def _instant(value: Any) -> datetime:
    instant = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def _json(value: Any) -> str | None:
    return None if value is None else orjson.dumps(value).decode()


def _bit(value: bool | None) -> int | None:
    return None if value is None else int(value)


def _text(value: Any) -> str | None:
    return f"{value:.2f}" if isinstance(value, float) else None if value is None else str(value)
