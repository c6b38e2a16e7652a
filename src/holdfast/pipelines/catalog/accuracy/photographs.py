"""Photographs of barcodes as people take them: turned, blurred, noisy, dark."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy
import zxingcpp
from PIL import Image, ImageDraw, ImageFilter

from holdfast.pipelines.catalog.normalising.gtin import check_digit

_SIZE = (1280, 960)


def photographs(folder: Path, count: int, seed: int) -> Iterator[tuple[Path, str]]:
    """Each with the number that is on it."""
    rng = random.Random(seed)
    for number in range(count):
        body = "".join(rng.choice("0123456789") for _ in range(12))
        digits = body + str(check_digit(body))
        path = folder / f"photo-{number}.jpg"
        photograph(digits, rng).save(path, quality=rng.randint(70, 92))
        yield path, digits


def photograph(digits: str, rng: random.Random, words: str = "") -> Image.Image:
    """A box with a barcode on a table."""
    shade = rng.randint(120, 220)
    picture = Image.new("RGB", _SIZE, (shade, shade - 10, shade - 25))
    draw = ImageDraw.Draw(picture)
    draw.rectangle((200, 150, 1080, 830), fill=(245, 245, 240))
    if words:
        draw.text((240, 190), words, fill=(25, 25, 30), font_size=64)
    code = zxingcpp.create_barcode(digits, zxingcpp.BarcodeFormat.EAN13)
    bars = Image.fromarray(numpy.array(zxingcpp.write_barcode_to_image(code, scale=4)))
    picture.paste(bars.convert("RGB"), (rng.randint(240, 480), rng.randint(400, 520)))
    turned = picture.rotate(
        rng.uniform(-30, 30) + rng.choice((0, 0, 90, 180)),
        resample=Image.Resampling.BICUBIC,
        expand=True,
        fillcolor=(90, 80, 70),
    )
    blurred = turned.filter(ImageFilter.GaussianBlur(rng.uniform(0, 1.6)))
    pixels = numpy.asarray(blurred, dtype=numpy.float32)
    noise = numpy.random.default_rng(rng.getrandbits(32)).normal(
        0, rng.uniform(0, 18), pixels.shape
    )
    lit = pixels * rng.uniform(0.6, 1.15) + noise
    return Image.fromarray(numpy.clip(lit, 0, 255).astype(numpy.uint8))
