"""Background work: parked messages return, daily sums get what changed, old rows are removed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from holdfast.pipeline import Row, Tx
from holdfast_posts.day_changes import DayChanges
from holdfast_posts.modes import read_modes
from holdfast_posts.options import PostsOptions

_EVENTS = 1000
_EVENTS_BYTES = 16 * 1024 * 1024
_CHANGES = 5000
_OLD = 1000
#: A message that was sent again and got lost on the way is sent once more after this time.
_RESEND_SECONDS = 120.0
_UNSENT_SECONDS = 60.0
_DAY_SECONDS = 86_400.0
_ERROR_DAY = ("scope", "day", "platform", "code", "category")


async def tend(tx: Tx, options: PostsOptions) -> bool:
    more = [
        await resend_due(tx, options),
        await add_day_changes(tx),
        await add_error_day_changes(tx),
        await _drop_old_errors(tx, options),
        await _drop_old_batches(tx, options),
    ]
    return any(more)


async def resend_due(tx: Tx, options: PostsOptions) -> bool:
    """Sends messages that are due to their queues again, through the outbox.

    Those that would only be parked again stay: there can be very many, and sending them would leave
    no time for others."""
    if await tx.fetch("posts_unsent", {"ago": -_UNSENT_SECONDS}):
        return False  # the broker is gone; copies would pile up
    modes = await read_modes(tx, options)
    rows = await tx.fetch("posts_due_events", {"limit": _CHANGES, **modes.switches})
    parked = [row["key"] for row in rows if modes.leave_parked(row)]
    await tx.take("posts_put_off_events", {"keys": parked, "seconds": options.park_seconds})
    left = set(parked)
    keys = _first_of([row for row in rows if row["key"] not in left])
    await tx.take("posts_put_off_events", {"keys": keys, "seconds": _RESEND_SECONDS})
    for row in await tx.fetch("posts_messages", {"keys": keys}):
        # Without an id of its own, so that it is not taken for a message that came before.
        await tx.send("", row["queue"], row["body"])
    return len(rows) == _CHANGES or len(keys) + len(parked) < len(rows)


def _first_of(rows: Sequence[Row]) -> list[str]:
    """Returns as many as are sent at once, limited by number and by size."""
    keys: list[str] = []
    size = 0
    for row in rows[:_EVENTS]:
        size += int(row["size"])
        if keys and size > _EVENTS_BYTES:
            break
        keys.append(row["key"])
    return keys


async def add_day_changes(tx: Tx) -> bool:
    """Adds what settlements changed to the sums of days: as much work as there are changes, however
    many posts a day has."""
    rows = await tx.fetch("posts_day_changes", {"limit": _CHANGES})
    if rows:
        changes = DayChanges()
        changes.merge(rows)
        await tx.take_many("posts_add_to_days", changes.rows())
        await tx.take("posts_drop_empty_days", {"scopes": sorted({row["scope"] for row in rows})})
        await tx.take("posts_forget_day_changes", {"ids": [row["id"] for row in rows]})
    return len(rows) == _CHANGES


async def add_error_day_changes(tx: Tx) -> bool:
    rows = await tx.fetch("posts_error_day_changes", {"limit": _CHANGES})
    if rows:
        counts: Counter[tuple[str, ...]] = Counter()
        for row in rows:
            counts[tuple(row[name] for name in _ERROR_DAY)] += row["errors"]
        changes = [(*day, errors) for day, errors in sorted(counts.items())]
        await tx.take_many("posts_add_to_error_days", changes)
        await tx.take("posts_forget_error_day_changes", {"ids": [row["id"] for row in rows]})
    return len(rows) == _CHANGES


async def _drop_old_errors(tx: Tx, options: PostsOptions) -> bool:
    if options.retain_errors_days is None:
        return False
    rows = await tx.fetch("posts_old_errors", _older(options.retain_errors_days))
    if rows:
        # The sums stay: they are small, and show the past.
        await tx.take("posts_delete_errors", {"ids": [row["id"] for row in rows]})
    return len(rows) == _OLD


async def _drop_old_batches(tx: Tx, options: PostsOptions) -> bool:
    if options.retain_batches_days is None:
        return False
    rows = await tx.fetch("posts_old_batches", _older(options.retain_batches_days))
    if rows:
        ids = {"ids": [row["id"] for row in rows]}
        await tx.take("posts_delete_batch_items", ids)
        await tx.take("posts_delete_batches", ids)
        await tx.take("posts_delete_events", {"keys": [row["batch_key"] for row in rows]})
    return len(rows) == _OLD


def _older(days: float) -> dict[str, Any]:
    return {"ago": -days * _DAY_SECONDS, "limit": _OLD}
