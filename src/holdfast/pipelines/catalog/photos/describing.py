"""What is kept of a photograph, and what its row in the grid says about it."""

from __future__ import annotations

from collections import OrderedDict

from holdfast.model import Json
from holdfast.pipeline import Context
from holdfast.pipelines.catalog.photos.reader import Photo
from holdfast.pipelines.catalog.saving import PhotoRow

_MOST_SEEN = 20_000


class SeenPhotos:
    """The photographs that this process has read recently: those of a batch are not written yet
    when the next ones are compared."""

    def __init__(self) -> None:
        self._seen: OrderedDict[tuple[int, str], tuple[int, str]] = OrderedDict()

    def first(self, job_id: int, photo_hash: str, seq: int, name: str) -> tuple[int, str]:
        """The row of the job that had this hash first, and the name of its photograph."""
        found = self._seen.setdefault((job_id, photo_hash), (seq, name))
        if len(self._seen) > _MOST_SEEN:
            self._seen.popitem(last=False)
        return found


async def keep_thumbnail(name: str, photo: Photo, ctx: Context) -> PhotoRow:
    key = f"thumbnails/{ctx.job.id}/{ctx.seq}.webp"
    await ctx.files.put(key, photo.thumbnail)
    return PhotoRow(name, photo.hash, key)


async def describe(result: Json, name: str, photo: Photo, seen: SeenPhotos, ctx: Context) -> Json:
    notes = []
    if photo.barcodes:
        notes.append(f"Barcode {', '.join(photo.barcodes)}")
    same = await _same_photo(name, photo, seen, ctx)
    if same is not None:
        notes.append(f"The same photograph as row {same[0]}, {same[1]}")
    details = {"name": name, "width": photo.width, "height": photo.height, "hash": photo.hash}
    return result | {
        "Item #": result["Item #"] or str(ctx.seq),
        "Reason": ". ".join([*notes, result["Reason"]]),
        "photo": details | {"barcodes": list(photo.barcodes), "same_as": same and same[0]},
    }


async def _same_photo(
    name: str, photo: Photo, seen: SeenPhotos, ctx: Context
) -> tuple[int, str] | None:
    first = seen.first(ctx.job.id, photo.hash, ctx.seq, name)
    if first[0] != ctx.seq:
        return first
    params = {"job_id": ctx.job.id, "hash": photo.hash, "seq": ctx.seq}
    rows = await ctx.read("catalog_same_photo", params)
    return (rows[0]["seq"], rows[0]["name"]) if rows else None
