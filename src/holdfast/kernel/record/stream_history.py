"""The history of streams: their pages, in which a repeated cursor is found, and their slices.

Its size is limited, because a stream may follow its source for ever.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import orjson

from holdfast.kernel.database.driver import Transaction

#: How many of the latest pages of a pass are kept, besides those whose number is a power of two,
#: and how many of the latest slices of a stream.
PAGES_KEPT = 1000
SLICES_KEPT = 500
#: Pages are pruned once in this many, not with each.
_PRUNED_EVERY = 100


class PageOfPass(NamedTuple):
    """Which page of a pass it is, from 1."""

    stream_id: int
    generation: int
    number: int


async def add_page(
    tx: Transaction, place: PageOfPass, next_cursor: Any, records: int, items: int
) -> bool:
    """Adds a page; returns False if its cursor came before in this pass."""
    if place.number == 1 or place.number % _PRUNED_EVERY == 0:
        kept = {"stream_id": place.stream_id, "generation": place.generation}
        await tx.run("prune_stream_pages", kept | {"before": place.number - PAGES_KEPT})
    written = orjson.dumps(next_cursor, option=orjson.OPT_SORT_KEYS)
    params = place._asdict() | {
        "cursor_hash": hashlib.sha256(written).hexdigest(),
        "records": records,
        "items": items,
    }
    return bool(await tx.take("add_stream_page", params))


async def begin_slice(tx: Transaction, stream_id: int, worker: str) -> int:
    new_slice = {"stream_id": stream_id, "worker": worker}
    await tx.run("end_lost_slices", new_slice)
    await tx.run("prune_slices", {"stream_id": stream_id, "kept": SLICES_KEPT})
    return int((await tx.take("add_slice", new_slice))[0][0])


async def end_slice(tx: Transaction, slice_id: int, ended: str, error: str | None = None) -> None:
    await tx.run("end_slice", {"id": slice_id, "ended": ended, "error": error})


async def release_slice(tx: Transaction, slice_id: int) -> None:
    """Ends a slice; one that found nothing leaves no trace."""
    if not await tx.take("drop_empty_slice", {"id": slice_id}):
        await end_slice(tx, slice_id, "released")
