"""Keeps what is known about a photograph, and describes it in its row of the grid."""

from __future__ import annotations

from holdfast.errors import Skip
from holdfast.model import Json
from holdfast.pipeline import Context
from holdfast_catalog.normalising.words import text_of
from holdfast_catalog.photos.likeness import (
    Seen,
    SeenPhotos,
    bands_of,
    distance,
    nearest,
)
from holdfast_catalog.photos.reader import Photo
from holdfast_catalog.saving import PhotoRow


async def keep_thumbnail(name: str, photo: Photo, ctx: Context) -> PhotoRow | None:
    if _is_dry_run(ctx):
        return None
    key = f"jobs/{ctx.job.id}/{ctx.seq}.webp"  # deleted with the job
    await ctx.files.put(key, photo.thumbnail)
    if not await ctx.read("catalog_job_stays", {"job_id": ctx.job.id}):
        # Its files may have been deleted already.
        await ctx.files.delete(key)
        raise Skip("the job was deleted")
    return PhotoRow(name, photo.hash, key)


async def describe(result: Json, name: str, photo: Photo, seen: SeenPhotos, ctx: Context) -> Json:
    name = text_of(name)
    notes = [] if result["Description"] == name else [f"Photograph {name}"]
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


def _is_dry_run(ctx: Context) -> bool:
    """Whether there is no job: then nothing is kept, nor compared with other dry runs."""
    return not ctx.job.id


async def _same_photo(name: str, photo: Photo, seen: SeenPhotos, ctx: Context) -> Seen | None:
    """Returns another photograph of the job that is the same, or almost."""
    if _is_dry_run(ctx):
        return None
    own = Seen(ctx.seq, name, photo.hash)
    others = seen.alike(ctx.job.id, own)
    seen.add(ctx.job.id, own)
    bands = bands_of(photo.hash)
    parts = {f"part{band}": part for band, part in bands}
    params = {"job_id": ctx.job.id, "seq": ctx.seq, **parts}
    rows = await ctx.read("catalog_alike_photos", params)
    return nearest(photo.hash, [*others, *(Seen(*row) for row in rows)])
