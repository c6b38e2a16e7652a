"""Article numbers on a photograph: barcodes that are turned, tilted, blurred, noisy or small.

The whole photograph is looked at first. If that is not enough, places with parallel bars are
looked for, turned upright, and averaged along the bars, which takes the noise away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy
import zxingcpp
from PIL import Image, ImageFilter, ImageOps

Pixels = Any  # an array of grey values

_STRONG: Any = [zxingcpp.BarcodeFormat.EAN13, zxingcpp.BarcodeFormat.UPCA]
#: Short codes: part of a long one that is hard to read may look like one of them.
_WEAK: Any = [
    zxingcpp.BarcodeFormat.EAN8,
    zxingcpp.BarcodeFormat.UPCE,
    zxingcpp.BarcodeFormat.ITF14,
]
_ALL: Any = [*_STRONG, *_WEAK]
_CELL = 8  # pixels that are looked at together
_WINDOW = 5  # cells
_MOST_PLACES = 4
_VOTES = 2
_CROP = (1200, 160)
_ANGLES = (0.0, -2.5, 2.5, -5.0, 5.0)
_BANDS = (3, 9, 25)


def article_numbers(image: Image.Image, whole: Callable[[], Image.Image | None]) -> list[str]:
    """`whole` is the photograph before it was reduced, if it was: a small code is lost by that."""
    grey = ImageOps.grayscale(image)
    found, weak = _read_whole(grey)
    if found:
        return found
    larger = whole()
    if larger is not None:
        found, other = _read_whole(larger)
        weak = weak or other
    return found or _read_places(grey, larger) or weak


def _read_whole(grey: Image.Image) -> tuple[list[str], list[str]]:
    """Long codes and short ones. A short one may hide a long one: that is looked for again."""
    pixels = numpy.asarray(grey)
    results = zxingcpp.read_barcodes(pixels, formats=_ALL)
    weak = _texts(result for result in results if result.format in _WEAK)
    strong = _texts(result for result in results if result.format not in _WEAK)
    return strong or (_numbers(pixels, _STRONG) if weak else []), weak


def _numbers(pixels: Pixels, formats: Any, **options: Any) -> list[str]:
    return _texts(zxingcpp.read_barcodes(pixels, formats=formats, **options))


def _texts(results: Iterable[Any]) -> list[str]:
    """Each once."""
    return list(dict.fromkeys(result.text for result in results if result.text.isdecimal()))


def _read_places(grey: Image.Image, larger: Image.Image | None) -> list[str]:
    source = larger or grey
    for x, y, angle in _places(grey):
        scale = source.width / grey.width
        number = _read_place(source, x * scale, y * scale, angle)
        if number:
            return [number]
    return []


def _places(grey: Image.Image) -> Iterator[tuple[float, float, float]]:
    """Where bars are, the clearest first, and at which angle in degrees."""
    pixels = numpy.asarray(grey.filter(ImageFilter.GaussianBlur(1)), dtype=numpy.float32)
    if min(pixels.shape) < _CELL * _WINDOW:
        return
    down, right = numpy.gradient(pixels)
    # One product at a time: together they would take more memory than the photograph.
    factors = ((right, right), (down, down), (right, down))
    across, along, mixed = (_mean(one * other) for one, other in factors)
    strength = numpy.hypot(across - along, 2 * mixed)
    clearness = strength * strength / (across + along + 50.0)
    for _ in range(_MOST_PLACES):
        row, column = numpy.unravel_index(int(clearness.argmax()), clearness.shape)
        if clearness[row, column] <= 0:
            return
        turn = 0.5 * numpy.arctan2(2 * mixed[row, column], across[row, column] - along[row, column])
        x, y = ((at + 0.5) * _CELL for at in (int(column), int(row)))
        yield x, y, float(numpy.degrees(turn))
        _forget(clearness, int(row), int(column))


def _forget(clearness: Pixels, row: int, column: int) -> None:
    reach = 3 * _WINDOW
    clearness[max(0, row - reach) : row + reach, max(0, column - reach) : column + reach] = 0


def _mean(values: Pixels) -> Pixels:
    """Of the cells around each cell."""
    rows, columns = (side // _CELL for side in values.shape)
    cut = values[: rows * _CELL, : columns * _CELL]
    cells = cut.reshape(rows, _CELL, columns, _CELL).mean(axis=(1, 3), dtype=numpy.float64)
    half = _WINDOW // 2
    padded = numpy.pad(cells, ((half + 1, half), (half + 1, half)), mode="edge")
    sums = padded.cumsum(0).cumsum(1)
    size = _WINDOW
    total = sums[size:, size:] - sums[:-size, size:] - sums[size:, :-size] + sums[:-size, :-size]
    return total / size**2


def _read_place(source: Image.Image, x: float, y: float, angle: float) -> str:
    """A number that was read twice, in different ways."""
    votes: Counter[str] = Counter()
    for more in _ANGLES:
        for band in _bands(_upright(source, x, y, angle + more)):
            votes.update(_numbers(band, _STRONG, try_rotate=False, try_invert=False))
            if votes and votes.most_common(1)[0][1] >= _VOTES:
                return votes.most_common(1)[0][0]
    return ""


def _upright(source: Image.Image, x: float, y: float, angle: float) -> Image.Image:
    """The surroundings of a point, turned so that bars stand upright."""
    width, height = _CROP
    turn = numpy.radians(angle)
    cos, sin = float(numpy.cos(turn)), float(numpy.sin(turn))
    left = x - cos * width / 2 + sin * height / 2
    top = y - sin * width / 2 - cos * height / 2
    return source.transform(
        _CROP,
        Image.Transform.AFFINE,
        (cos, -sin, left, sin, cos, top),
        Image.Resampling.BICUBIC,
        fillcolor=255,
    )


def _bands(upright: Image.Image) -> Iterator[Pixels]:
    """Rows averaged over a height, as an image that is high enough to be read."""
    pixels = numpy.asarray(upright, dtype=numpy.float32)
    middle = pixels.shape[0] // 2
    for half in _BANDS:
        for offset in (0, -30, 30):
            rows = pixels[middle + offset - half : middle + offset + half + 1].mean(axis=0)
            yield _as_image(rows)
            yield _as_image(_sharpened(rows))


def _sharpened(rows: Pixels) -> Pixels:
    kernel = numpy.ones(7) / 7
    return rows + 1.5 * (rows - numpy.convolve(rows, kernel, mode="same"))


def _as_image(rows: Pixels) -> Pixels:
    """Twice as wide, in full contrast."""
    places = numpy.arange(0, len(rows) - 1, 0.5)
    wide = numpy.interp(places, numpy.arange(len(rows)), rows)
    low, high = numpy.percentile(wide, (2, 98))
    stretched = numpy.clip((wide - low) / max(high - low, 1.0), 0, 1) * 255
    return numpy.repeat(stretched.astype(numpy.uint8)[None, :], 24, axis=0)
