"""Generates photographs of barcodes as people take them: turned, tilted, blurred, noisy, dark, far
away."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy
import zxingcpp
from PIL import Image, ImageDraw, ImageFilter

from holdfast_catalog.normalising.gtin import check_digit

_SIZE, _LARGE = (1280, 960), (3000, 2250)
_LARGE_SHARE = 0.1
_MOST_TILT = 0.12
_FORMATS = {
    13: zxingcpp.BarcodeFormat.EAN13,
    12: zxingcpp.BarcodeFormat.UPCA,
    8: zxingcpp.BarcodeFormat.EAN8,
}
_LENGTHS = (13, 13, 12, 8)


def photographs(folder: Path, count: int, seed: int) -> Iterator[tuple[Path, str]]:
    """Yields photographs, each with the number that is on it."""
    rng = random.Random(seed)
    for number in range(count):
        length = rng.choice(_LENGTHS)
        body = "".join(rng.choice("0123456789") for _ in range(length - 1))
        digits = body + str(check_digit(body))
        path = folder / f"photo-{number}.jpg"
        photograph(digits, rng).save(path, quality=rng.randint(70, 92))
        yield path, digits


def photograph(digits: str, rng: random.Random, words: str = "") -> Image.Image:
    """Draws a box with a barcode on a table. Some are large photographs with a small code."""
    is_large = rng.random() < _LARGE_SHARE
    picture = _box(digits, rng, words, rng.choice((2, 3)) if is_large else 4)
    if is_large:
        table = Image.new("RGB", _LARGE, (rng.randint(90, 160),) * 3)
        places = [most - side for most, side in zip(_LARGE, picture.size, strict=True)]
        table.paste(picture, (rng.randint(0, places[0]), rng.randint(0, places[1])))
        picture = table
    turned = _tilted(picture, rng).rotate(
        rng.uniform(0, 360),
        resample=Image.Resampling.BICUBIC,
        expand=True,
        fillcolor=(90, 80, 70),
    )
    blurred = turned.filter(ImageFilter.GaussianBlur(rng.uniform(0, 1.0 if is_large else 1.6)))
    return _lit(blurred, rng)


def _box(digits: str, rng: random.Random, words: str, scale: int) -> Image.Image:
    shade = rng.randint(120, 220)
    picture = Image.new("RGB", _SIZE, (shade, shade - 10, shade - 25))
    draw = ImageDraw.Draw(picture)
    draw.rectangle((200, 150, 1080, 830), fill=(245, 245, 240))
    if words:
        draw.text((240, 190), words, fill=(25, 25, 30), font_size=64)
    code = zxingcpp.create_barcode(digits, _FORMATS[len(digits)])
    bars = Image.fromarray(numpy.array(zxingcpp.write_barcode_to_image(code, scale=scale)))
    picture.paste(bars.convert("RGB"), (rng.randint(240, 480), rng.randint(400, 520)))
    return picture


def _tilted(picture: Image.Image, rng: random.Random) -> Image.Image:
    """Returns the picture as seen from the side: the far edge is shorter."""
    width, height = picture.size
    near = rng.uniform(0, _MOST_TILT) * width
    slope = 2 * near / (width * height)
    coefficients = (1, near / height, -near, 0, 1 + slope * width / 2, 0, 0, slope)
    return picture.transform(
        picture.size,
        Image.Transform.PERSPECTIVE,
        coefficients,
        Image.Resampling.BICUBIC,
        fillcolor=(90, 80, 70),
    )


def _lit(picture: Image.Image, rng: random.Random) -> Image.Image:
    """Returns the picture with noise, and in light that reduces contrast."""
    pixels = numpy.asarray(picture, dtype=numpy.float32)
    noise = numpy.random.default_rng(rng.getrandbits(32)).normal(
        0, rng.uniform(0, 18), (*pixels.shape[:2], 1)
    )
    contrast = rng.choice((1.0, 1.0, rng.uniform(0.35, 1.0)))
    lit = (pixels * contrast + 128 * (1 - contrast)) * rng.uniform(0.6, 1.15)
    return Image.fromarray(numpy.clip(lit + noise * contrast, 0, 255).astype(numpy.uint8))
