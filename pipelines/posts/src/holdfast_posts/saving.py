"""Writes results in the transaction that settles their items: posts, errors of crawlers, the counts
of their batches, and what their batches send when they are complete.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

from holdfast.model import ItemStatus, Json
from holdfast.pipeline import Row, Settled, Tx
from holdfast_posts import results
from holdfast_posts.day_changes import DayChanges
from holdfast_posts.metrics import PostsMetrics, platform_label
from holdfast_posts.options import PostsOptions
from holdfast_posts.results import Item

_TEXT = 2000
_COMPARED = ("overall_sentiment", "primary_intent", "risk_level", "impact_score", "project_id")
SUCCESS, ERROR, FAILED = "success", "error", "failed"


#: A batch and, if all of them are known, its items.
Finished = tuple[Row, Sequence[Item] | None]
Key = tuple[str, str, str]  # of a post: scope, platform, content id


@dataclass(slots=True)
class _Rows:
    """The rows that a settlement writes."""

    items: dict[tuple[int, int], Item] = field(default_factory=dict)
    posts: dict[Key, Json] = field(default_factory=dict)
    versions: dict[Key, tuple[str, int]] = field(default_factory=dict)
    errors: list[Json] = field(default_factory=list)
    shadows: dict[Key, tuple[int, Mapping[str, Any]]] = field(default_factory=dict)


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
        tx.after_commit(lambda: _measure(metrics, settled, finished))


def _collect(rows: _Rows, item: Settled, batch: Row) -> None:
    place = (int(item.row["batch"]), int(item.row["position"]))
    effects: Json | None = item.effects if item.status is ItemStatus.DONE else None
    if effects is None:
        error = f"{item.code}: {item.message}"[:500]
        rows.items[place] = Item(None, FAILED, None, None, None, error)
        return
    post, analysis = effects["post"], effects["analysis"]
    if post["error"] is not None and not batch["shadow"]:
        rows.errors.append(_error_row(post, batch, effects["at"]))
    if analysis is None:
        code = post["error_code"]
        rows.items[place] = Item(post["content_id"], ERROR, None, None, None, code)
        return
    sentiment, score = analysis["overall_sentiment"], analysis["sentiment_score"]
    impact = analysis["impact_score"]
    rows.items[place] = Item(post["content_id"], SUCCESS, sentiment, score, impact, None)
    key = (batch["scope"], post["platform"], post["content_id"])
    if batch["shadow"]:
        rows.shadows[key] = (place[0], {**analysis, "project_id": batch["project_id"]})
        return
    version = (post["crawled_at"] or effects["at"], place[0])
    if version >= rows.versions.get(key, ("", 0)):
        rows.versions[key] = version
        rows.posts[key] = _post_row(key, effects, batch, version[0])


def _post_row(key: Key, effects: Json, batch: Row, version_at: str) -> Json:
    post, found, author = effects["post"], effects["analysis"], effects["post"]["author"]
    error = post["error"] or {}
    scope, platform, content_id = key
    return {
        "scope": scope,
        "platform": platform,
        "content_id": content_id,
        "project_id": batch["project_id"],
        "job_id": batch["job_id"] or post["job_id"],
        "batch_id": int(batch["id"]),
        "batch_index": batch["batch_index"],
        "task_type": batch["task_type"] or post["task_type"],
        "keyword_source": post["keyword_source"] or batch["keyword"],
        "pipeline_version": post["pipeline_version"],
        "crawled_at": post["crawled_at"],
        "version_at": version_at,
        "fetch_status": post["fetch_status"],
        "fetch_error": error.get("message"),
        "error_code": post["error_code"],
        "error_details": _json(error.get("details")),
        "permalink": post["permalink"],
        "author_id": author["id"],
        "author_name": author["name"] or author["username"],
        "text": (post["text"] or "")[:_TEXT] or None,
        "language": found["language"],
        "published_at": post["published_at"],
        "day": day_of(post, effects["at"]),
        "overall_sentiment": found["overall_sentiment"],
        "sentiment_score": found["sentiment_score"],
        "sentiment_confidence": found["sentiment_confidence"],
        "sentiment_probabilities": _json(found["sentiment_probabilities"]),
        "not_analysed": found["not_analysed"],
        "primary_intent": found["primary_intent"],
        "intent_confidence": found["intent_confidence"],
        "impact_score": found["impact_score"],
        "risk_level": found["risk_level"],
        "is_viral": _bit(found["is_viral"]),
        "is_kol": _bit(found["is_kol"]),
        "impact_breakdown": _json(found["impact_breakdown"]),
        "aspects_breakdown": _json(found["aspects_breakdown"]),
        "keywords": _json(found["keywords"]),
        "view_count": post["views"],
        "like_count": post["likes"],
        "comment_count": post["comments_count"],
        "share_count": post["shares"],
        "save_count": post["saves"],
        "follower_count": author["followers"],
        "processing_time_ms": effects["milliseconds"],
        "model_version": found["model_version"],
    }


def day_of(post: Json, at: str) -> str:
    """Returns the day that a post counts for, in UTC: of its publication, or of its crawl."""
    day: str = post["published_at"] or post["crawled_at"] or at
    return day[:10]


def _error_row(post: Json, batch: Row, at: str) -> Json:
    error = post["error"]
    return {
        "content_id": post["content_id"],
        "scope": batch["scope"],
        "project_id": batch["project_id"],
        "job_id": batch["job_id"] or post["job_id"] or "",
        "platform": post["platform"],
        "batch_key": batch["batch_key"],
        "error_code": error["code"],
        "error_category": error["category"],
        "retry_class": error["retry"],
        "error_message": error["message"],
        "error_details": _json(error["details"]),
        "permalink": post["permalink"],
        "day": at[:10],
    }


async def _write(tx: Tx, rows: _Rows) -> None:
    """Writes rows in the order of their keys: two settlements that share some must not wait for
    each other."""
    if rows.posts:
        await _write_posts(tx, rows.posts)
    if rows.errors:
        errors = sorted(rows.errors, key=lambda row: repr(list(row.values())))
        added = await tx.take_many("posts_add_errors", errors)
        counts = Counter(tuple(row) for row in added)
        changes = [(*day, count) for day, count in sorted(counts.items())]
        await tx.take_many("posts_change_error_days", changes)


async def _write_posts(tx: Tx, posts: Mapping[Key, Json]) -> None:
    """Adds new posts, then replaces others.

    It takes two steps, because only an existing post can be locked: what it counted for must be
    known exactly."""
    changes = DayChanges()
    added = await tx.take_many("posts_insert", [posts[key] for key in sorted(posts)])
    new = {_key(row) for row in added}
    changes.add(posts[key] for key in new)
    others = sorted(posts.keys() - new)
    if others:
        before = {_key(row): row for row in await tx.take_many("posts_hold", others)}
        replaced = await tx.take_many("posts_replace", [posts[key] for key in others])
        for key in map(_key, replaced):
            changes.remove(before[key])
            changes.add([posts[key]])
    await tx.take_many("posts_change_days", changes.rows())


def _key(row: Row) -> Key:
    return row["scope"], row["platform"], row["content_id"]


async def _compare(tx: Tx, rows: _Rows, metrics: PostsMetrics | None) -> None:
    """Compares, in shadow mode, what this mode would have stored with what the other one has
    stored."""
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
            tx.after_commit(metrics.differences.labels(difference[3]).inc)


async def _count(tx: Tx, rows: _Rows, batches: Mapping[int, Row]) -> list[Finished]:
    """Writes and counts the items of the batches; returns the batches that are complete now."""
    if not rows.items:
        return []
    items = [(*place, *rows.items[place]) for place in sorted(rows.items)]
    await tx.take_many("posts_add_items", items)
    known: dict[int, list[Item]] = {}
    for place in sorted(rows.items):
        known.setdefault(place[0], []).append(rows.items[place])
    whole = {number for number, of in known.items() if len(of) == batches[number]["items_count"]}
    counts = {number: Counter(item.status for item in known[number]) for number in whole}
    parts = sorted(known.keys() - whole)
    counts.update((number, Counter()) for number in parts)
    for row in await tx.fetch("posts_count_items", {"ids": parts}) if parts else ():
        counts[int(row["batch_id"])][row["status"]] = int(row["items"])
    statuses = (SUCCESS, ERROR, FAILED)
    sums = [(number, *map(counts[number].__getitem__, statuses)) for number in sorted(counts)]
    await tx.take_many("posts_set_counts", sums)
    return [
        (batches[number], known[number] if number in whole else None)
        for number in sorted(counts)
        if counts[number].total() >= batches[number]["items_count"]
        and batches[number]["state"] == "OPEN"
    ]


def _measure(
    metrics: PostsMetrics,
    settled: Sequence[Settled],
    finished: Sequence[Finished],
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
    for batch, _ in finished:
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
