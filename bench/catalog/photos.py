"""A zip of photographs: most of them small, some with a barcode that has to be read, a few as
large as phones take them."""

from __future__ import annotations

import io
import random
import zipfile
from pathlib import Path

from PIL import Image

from bench.measure import Watch, python, run_to_end
from bench.quality.catalog.photographs import photograph
from holdfast_catalog.normalising.gtin import check_digit

_WITH_BARCODES = 50  # one photograph in this many
_DIFFERENT = 20  # photographs with barcodes are drawn once and used again
_FROM_PHONES = 100  # one in this many has twelve megapixels
_PHONE = (4000, 3000)


def write_zip(path: Path, count: int) -> None:
    rng = random.Random(1)
    large = [_jpeg(photograph(_digits(rng), rng)) for _ in range(_DIFFERENT)]
    phone = [_jpeg(photograph(_digits(rng), rng).resize(_PHONE)) for _ in range(3)]
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(count):
            is_large = number % _WITH_BARCODES == 0
            content = rng.choice(large) if is_large else _jpeg(_small(rng))
            if number % _FROM_PHONES == 1:
                content = rng.choice(phone)
            archive.writestr(f"photo-{number:05}.jpg", content)


def price_photographs(url: str, path: Path, folder: Path) -> Watch:
    """Measures the resident memory of all processes together, counting shared pages in each.

    The schema exists before: only the very first command creates it. Text is not read: that needs a
    model of its own size."""
    settings = {
        "HOLDFAST_DATABASE_URL": url,
        "HOLDFAST_DATA_DIR": str(folder / "data"),
        "HOLDFAST_CATALOG_READ_TEXT": "false",
        "HOLDFAST_CATALOG_ATTEMPTS_NOT_FOUND": "1",
    }
    run_to_end([python("holdfast", "migrate", "up")], folder, settings)
    command = python("holdfast", "run", "catalog", path, "--workers", "1")
    return run_to_end([command], folder, settings, timeout_seconds=3600)


def _digits(rng: random.Random) -> str:
    body = "".join(rng.choice("0123456789") for _ in range(12))
    return body + str(check_digit(body))


def _small(rng: random.Random) -> Image.Image:
    tones = [tuple(rng.randrange(256) for _ in range(3)) for _ in range(64)]
    image = Image.new("RGB", (8, 8))
    image.putdata(tones)
    return image.resize((120, 90))


def _jpeg(image: Image.Image) -> bytes:
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=80)
    return stream.getvalue()
