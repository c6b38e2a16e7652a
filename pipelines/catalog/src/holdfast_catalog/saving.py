"""Writes what shops were asked, in the transaction that settles the items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.model import Json
from holdfast.pipeline import Settled, Tx
from holdfast_catalog.offers import SearchEvent
from holdfast_catalog.photos.likeness import bands_of

_LONGEST_QUERY = 500


@dataclass(frozen=True, slots=True)
class PhotoRow:
    name: str
    hash: str
    thumbnail: str


@dataclass(slots=True)
class Effects:
    """The effects of an attempt besides its result."""

    events: list[SearchEvent] = field(default_factory=list)
    photo: PhotoRow | None = None


async def save(tx: Tx, settled: Sequence[Settled]) -> None:
    left = [(item, item.effects) for item in settled if isinstance(item.effects, Effects)]
    rows = [_row(item.job.id, item.seq, event) for item, own in left for event in own.events]
    if rows:
        await tx.take_many("catalog_save_search_events", rows)
    photos = [
        (item.job.id, item.seq, own.photo.name, own.photo.hash, own.photo.thumbnail)
        for item, own in left
        if own.photo is not None
    ]
    if photos:
        await tx.take_many("catalog_save_photos", photos)
        bands = [
            (job_id, band, part, seq)
            for job_id, seq, _, photo_hash, _ in photos
            for band, part in bands_of(photo_hash)
        ]
        await tx.take_many("catalog_save_photo_bands", bands)


def _row(job_id: int, seq: int, event: SearchEvent) -> Json:
    return {
        "job_id": job_id,
        "seq": seq,
        "attempt": event.attempt,
        "provider": event.provider,
        "strategy": event.strategy,
        "query": event.query[:_LONGEST_QUERY],
        "success": int(event.success),
        "results": event.results,
        "seconds": event.seconds,
        "error": event.error,
    }
