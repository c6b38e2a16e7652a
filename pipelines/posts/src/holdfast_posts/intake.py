"""Converts a message to items: which format it is, whether that is switched on, and what its batch
has.

Everything that takes time happens in `prepare`, before the transaction; `take` writes the result.
An event is known by its id, a batch by its place in the store: a second one changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from holdfast.consumers import ConsumerTools, Incoming, Topic
from holdfast.errors import NotThere
from holdfast.flags import in_share
from holdfast.model import Json, Record
from holdfast.pipeline import Tx
from holdfast_posts import results
from holdfast_posts.batches import (
    BadBatch,
    BadItem,
    BatchLimits,
    expected_size,
    read_batch,
)
from holdfast_posts.formats import Format, Message, platform_of, read_message
from holdfast_posts.job_ids import DRY_RUN, attribute
from holdfast_posts.metrics import PostsMetrics, platform_label
from holdfast_posts.options import PostsOptions
from holdfast_posts.values import id_of, mapping_of, stored, word_of

DRY_RUNS, SHADOW = "dry runs", "shadow"


@dataclass(frozen=True, slots=True)
class Aside:
    """The reason why a message is not processed now."""

    state: str  # PARKED, WAITING or DEAD
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Prepared:
    message: Message
    items: Sequence[Any] = ()
    aside: Aside | None = None
    shadow: bool = False  # its items are compared, not stored; only with `aside`
    at: str = ""  # the time for items without a time of their crawl
    warnings: tuple[str, ...] = ()


class Intake:
    def __init__(self, options: PostsOptions, tools: ConsumerTools) -> None:
        self._options = options
        self._tools = tools
        self._limits = BatchLimits(
            options.max_batch_bytes, options.max_batch_items, options.max_item_bytes
        )

    @property
    def _metrics(self) -> PostsMetrics | None:
        metrics: PostsMetrics | None = self._tools.pipeline.metrics
        return metrics

    # Before the transaction.

    async def prepare(self, incoming: Incoming) -> Prepared:
        now = self._tools.clock.now()
        message = read_message(incoming.body, self._options.max_message_bytes, now)
        at = stored(message.sent_at or now) or ""
        aside = await self._switched_off(message)
        if aside is not None:
            if not await self._is_shadowed(message):
                return Prepared(message, aside=aside)
            shadowed = await self._fetched(message, at)
            return Prepared(message, shadowed.items, aside, shadowed.aside is None, at)
        return await self._fetched(message, at)

    async def _switched_off(self, message: Message) -> Aside | None:
        """Returns why the message is parked, if its format is off; it is never taken for another
        format."""
        if message.format is not Format.EVENT:
            if await self._tools.flag("posts_legacy_mode"):
                return None
            return Aside("PARKED", "LEGACY_MODE_OFF", "the legacy mode is off")
        if not await self._tools.flag("posts_new_mode"):
            return Aside("PARKED", "NEW_MODE_OFF", "the new mode is off")
        canary = float(await self._tools.flag("posts_canary"))
        if in_share(canary, message.job_id or ""):
            return None
        return Aside("PARKED", "NOT_IN_CANARY", f"its job is not among the {canary:g} %")

    async def _is_shadowed(self, message: Message) -> bool:
        return message.format is Format.EVENT and bool(await self._tools.flag("posts_shadow"))

    async def _fetched(self, message: Message, at: str) -> Prepared:
        if message.post is not None:
            return Prepared(message, [message.post], at=at)
        assert message.bucket is not None and message.path is not None
        if message.bucket not in self._options.allowed_buckets:
            reason = f"batches are not fetched from the bucket {message.bucket!r:.70}"
            return Prepared(message, aside=Aside("DEAD", "BUCKET_NOT_ALLOWED", reason))
        started = self._tools.clock.monotonic()
        try:
            blocks = self._tools.fetch(message.bucket, message.path)
            items = await read_batch(blocks, self._limits)
        except NotThere:
            reason = f"there is no {message.batch_key}"
            return Prepared(message, aside=Aside("WAITING", "BATCH_MISSING", reason))
        except BadBatch as bad:
            return Prepared(message, aside=Aside("DEAD", bad.code, f"the batch: {bad.reason}"))
        if self._metrics is not None:
            seconds = self._tools.clock.monotonic() - started
            self._metrics.fetch_seconds.labels(platform_label(message.platform)).observe(seconds)
        message = _attributed(message, items)
        return Prepared(message, items, at=at, warnings=_warnings(message, items))

    # In the transaction.

    async def take(self, tx: Tx, incoming: Incoming) -> Topic | None:
        prepared: Prepared = incoming.prepared
        if prepared.aside is None:
            return await self._take_batch(tx, incoming, prepared)
        await self._set_aside(tx, incoming, prepared.message, prepared.aside)
        if not prepared.shadow:
            return None
        batch_id = await self._add_batch(tx, prepared)
        return None if batch_id is None else Topic(SHADOW, _records(prepared, batch_id))

    async def _take_batch(self, tx: Tx, incoming: Incoming, prepared: Prepared) -> Topic | None:
        message = prepared.message
        event = {**_event(message, incoming), "warnings": _json(prepared.warnings)}
        written = await _write(tx, "posts_take_event", event, message)
        if written is None:
            self._count(tx, message, "repeated")
            return None
        message = written
        batch_id = await self._add_batch(tx, replace(prepared, message=message))
        if batch_id is None:
            await tx.take("posts_repeat_event", {"key": message.key})
            self._count(tx, message, "repeated")
            return None
        self._count(tx, message, "taken")
        tx.after_commit(lambda: self._note(prepared))
        if not prepared.items:
            held = await tx.fetch("posts_hold_batches", {"ids": [batch_id]})
            await results.send_finished(tx, self._options, [(held[0], [])])
            return None
        return Topic(_topic(message), _records(prepared, batch_id))

    async def _add_batch(self, tx: Tx, prepared: Prepared) -> int | None:
        message = prepared.message
        batch = {
            "batch_key": f"shadow:{message.batch_key}" if prepared.shadow else message.batch_key,
            "event_key": message.key,
            "format": message.format,
            "state": "OPEN" if prepared.items else "DONE",
            "scope": message.scope,
            "project_id": message.attribution.project_id,
            "project_method": message.attribution.method,
            "job_id": message.job_id,
            "platform": message.platform,
            "task_type": message.task_type,
            "keyword": message.keyword,
            "batch_index": message.batch_index,
            "total_batches": message.total_batches,
            "content_count": message.content_count,
            "items_count": len(prepared.items),
            "shadow": int(prepared.shadow),
            "warnings": _json(prepared.warnings),
            "sent_at": stored(message.sent_at),
        }
        rows = await tx.take("posts_add_batch", batch)
        return int(rows[0]["id"]) if rows else None

    async def _set_aside(self, tx: Tx, incoming: Incoming, message: Message, aside: Aside) -> None:
        """Sets an event aside with its message, so that it can be sent to its queue again."""
        options, seconds = self._options, self._options.park_seconds
        if aside.state == "WAITING":
            keys = [message.key, _longer_key(message)]
            known = {"keys": keys, "batch_key": message.batch_key}
            rows = await tx.fetch("posts_event_attempts", known)
            attempts = int(rows[0]["attempts"]) if rows else 0
            doubled = options.missing_first_seconds * 2 ** min(attempts, 30)
            seconds = min(doubled, options.missing_longest_seconds)
            if attempts + 1 >= options.missing_tries:
                aside = Aside("DEAD", aside.code, f"{aside.reason} after {attempts + 1} tries")
        event = {
            **_event(message, incoming),
            "warnings": _json(message.warnings),
            "state": aside.state,
            "code": aside.code,
            "reason": aside.reason[:500],
            "body": incoming.body.decode("utf-8", "replace").replace("\x00", ""),
            "seconds": seconds,
        }
        written = await _write(tx, "posts_set_aside_event", event, message)
        self._count(tx, message, "repeated" if written is None else aside.state.lower())

    # What is counted.

    def _count(self, tx: Tx, message: Message, outcome: str) -> None:
        if self._metrics is not None:
            tx.after_commit(self._metrics.events.labels(message.format, outcome).inc)

    def _note(self, prepared: Prepared) -> None:
        message = prepared.message
        for warning in prepared.warnings:
            self._tools.log.warning("posts.odd", key=message.key, warning=warning)
        if self._metrics is not None:
            for kind in _kinds(prepared):
                self._metrics.warnings.labels(kind).inc()


async def _write(tx: Tx, query: str, event: Json, message: Message) -> Message | None:
    """Writes the row of an event; returns None if it was processed before.

    An id that came with another batch does not make this batch known: the event is written under
    its id and its batch."""
    if await tx.take(query, event):
        return message
    if not await tx.fetch(
        "posts_event_of_another_batch", {"key": message.key, "batch_key": message.batch_key}
    ):
        return None
    message = replace(message, key=_longer_key(message))
    return message if await tx.take(query, {**event, "key": message.key}) else None


def _longer_key(message: Message) -> str:
    return f"{message.key} {message.batch_key}"


def _event(message: Message, incoming: Incoming) -> dict[str, Any]:
    return {
        "key": message.key,
        "format": message.format,
        "queue": incoming.queue,
        "batch_key": message.batch_key,
        "scope": message.scope,
        "job_id": message.job_id,
        "platform": message.platform,
        "sent_at": stored(message.sent_at),
    }


def _attributed(message: Message, items: Sequence[Any]) -> Message:
    """Adds the job that the post names to a legacy reference, which names none."""
    if message.job_id is not None or not items or not isinstance(items[0], dict):
        return message
    meta = mapping_of(items[0].get("meta"))
    job_id = id_of(meta.get("job_id"))
    if job_id is None:
        return message
    stated = message.attribution.project_id or id_of(meta.get("project_id"))
    return replace(
        message,
        job_id=job_id,
        attribution=attribute(job_id, stated),
        platform=message.platform or platform_of(meta.get("platform")),
        task_type=message.task_type or word_of(meta.get("task_type"), 30),
    )


def _topic(message: Message) -> str:
    scope = message.scope
    return DRY_RUNS if scope.startswith(DRY_RUN) else f"project {scope}"


def _records(prepared: Prepared, batch_id: int) -> list[Record]:
    context = {"batch": batch_id, "at": prepared.at, "platform": prepared.message.platform}
    if prepared.shadow:
        context["shadow"] = True
    return [
        Record({**context, "position": position, **_content(item)})
        for position, item in enumerate(prepared.items)
    ]


def _content(item: Any) -> dict[str, Any]:
    if isinstance(item, BadItem):
        return {"bad": item.reason, "excerpt": item.excerpt}
    return {"post": item}


def _warnings(message: Message, items: Sequence[Any]) -> tuple[str, ...]:
    warnings = list(message.warnings)
    if message.format is Format.EVENT:
        expected = expected_size(message.platform)
        if len(items) != expected:
            warnings.append(f"it has {len(items)} items; {expected} are usual")
        if message.content_count is not None and message.content_count != len(items):
            warnings.append(f"it has {len(items)} items; the event says {message.content_count}")
    if message.attribution.disagrees:
        warnings.append("the event names another project than its job id")
    return tuple(warnings)


def _kinds(prepared: Prepared) -> list[str]:
    """Returns the kinds of the warnings, for the metrics."""
    kinds = ["envelope"] * len(prepared.message.warnings)
    for warning in prepared.warnings[len(prepared.message.warnings) :]:
        by_end = {"usual": "size", "id": "project"}
        kinds.append(by_end.get(warning.rsplit(" ", 1)[-1], "count"))
    return kinds


def _json(warnings: Sequence[str]) -> str | None:
    return orjson.dumps(warnings).decode() if warnings else None
