"""What is kept of a photograph, and what its row in the grid says about it."""

from __future__ import annotations

from holdfast.model import Json
from holdfast.pipeline import Context
from holdfast.pipelines.catalog.photos.likeness import (
    Seen,
    SeenPhotos,
    bands_of,
    distance,
    nearest,
)
from holdfast.pipelines.catalog.photos.reader import Photo
from holdfast.pipelines.catalog.saving import PhotoRow


async def keep_thumbnail(name: str, photo: Photo, ctx: Context) -> PhotoRow:
    key = f"jobs/{ctx.job.id}/{ctx.seq}.webp"  # deleted with the job
    await ctx.files.put(key, photo.thumbnail)
    return PhotoRow(name, photo.hash, key)


async def describe(result: Json, name: str, photo: Photo, seen: SeenPhotos, ctx: Context) -> Json:
    notes = []
    if photo.barcodes:
        notes.append(f"Barcode {', '.join(photo.barcodes)}")
    same = await _same_photo(name, photo, seen, ctx)
    if same is not None:
        almost = "Almost the same" if distance(same.hash, photo.hash) else "The same"
        notes.append(f"{almost} photograph as row {same.seq}, {same.name}")
    details = {"name": name, "width": photo.width, "height": photo.height, "hash": photo.hash}
    return result | {
        "Item #": result["Item #"] or str(ctx.seq),
        "Reason": ". ".join([*notes, result["Reason"]]),
        "photo": details | {"barcodes": list(photo.barcodes), "same_as": same and same.seq},
    }


async def _same_photo(name: str, photo: Photo, seen: SeenPhotos, ctx: Context) -> Seen | None:
    """Another photograph of the job that is the same, or almost."""
    own = Seen(ctx.seq, name, photo.hash)
    others = seen.alike(ctx.job.id, own)
    seen.add(ctx.job.id, own)
    bands = bands_of(photo.hash)
    parts = {f"part{band}": part for band, part in bands}
    params = {"job_id": ctx.job.id, "seq": ctx.seq, **parts}
    rows = await ctx.read("catalog_alike_photos", params)
    return nearest(photo.hash, [*others, *(Seen(*row) for row in rows)])
