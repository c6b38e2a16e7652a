"""Writes what was asked of shops, in the transaction that settles the items."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.pipeline import Settled, Tx
from holdfast.pipelines.catalog.offers import SearchEvent

_LONGEST_QUERY = 500


async def save_events(tx: Tx, settled: Sequence[Settled]) -> None:
    rows = [_row(item.job.id, item.seq, event) for item in settled for event in item.effects or ()]
    if rows:
        await tx.take_many("catalog_save_search_events", rows)


def _row(job_id: int, seq: int, event: SearchEvent) -> tuple[int | float | str | None, ...]:
    return (
        job_id,
        seq,
        event.attempt,
        event.provider,
        event.strategy,
        event.query[:_LONGEST_QUERY],
        int(event.success),
        event.results,
        event.seconds,
        event.error,
    )
