"""Reads article numbers on a photograph: barcodes that are turned, tilted, blurred, noisy or small.

The whole photograph is tried first. If that is not enough, places with parallel bars are located,
turned upright, and averaged along the bars, which removes the noise.
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
_PLACED: Any = [*_STRONG, zxingcpp.BarcodeFormat.EAN8]
_CELL = 8  # pixels that are examined together
_WINDOW = 5  # cells
_STRIP = 16 * _CELL
_MOST_PLACES = 4
_VOTES, _VOTES_OF_SHORT, _SURE = 2, 3, 5
_SHORT = 8  # digits
_ZOOMS = (1.0, 2.0)
_CROP = (1200, 160)
_ANGLES = (0.0, -2.5, 2.5, -5.0, 5.0)
_BANDS = (3, 9, 25)
_FEWEST_EDGES = 16  # a short code has 43
_LOCAL = 31  # pixels
_CLEAR = 0.15


def article_numbers(image: Image.Image, whole: Callable[[], Image.Image | None]) -> list[str]:
    """Returns the article numbers.

    `whole` is the photograph before it was reduced, if it was: a small code is lost by that."""
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
    """Returns long codes and short ones.

    A short one may hide a long one: that is searched for again."""
    pixels = numpy.asarray(grey)
    results = zxingcpp.read_barcodes(pixels, formats=_ALL)
    weak = _texts(result for result in results if result.format in _WEAK)
    strong = [result for result in results if result.format not in _WEAK]
    if weak and not strong:
        strong = list(zxingcpp.read_barcodes(pixels, formats=_STRONG))
    return _texts(strong), weak


def _numbers(pixels: Pixels, formats: Any, **options: Any) -> list[str]:
    return _texts(zxingcpp.read_barcodes(pixels, formats=formats, **options))


def _texts(results: Iterable[Any]) -> list[str]:
    """Returns the texts, each once."""
    return list(dict.fromkeys(result.text for result in results if result.text.isdecimal()))


def _read_places(grey: Image.Image, larger: Image.Image | None) -> list[str]:
    source = larger or grey
    scale = source.width / grey.width
    votes: Counter[str] = Counter()
    for x, y, angle in _places(grey):
        _read_place(source, x * scale, y * scale, angle, votes)
        if _is_sure(votes):
            break
    number = _elected(votes)
    return [number] if number else []


def _is_sure(votes: Counter[str]) -> bool:
    return bool(votes) and votes.most_common(1)[0][1] >= _SURE


def _elected(votes: Counter[str]) -> str:
    """Returns a number that was read often enough, in different ways, and more often than any
    other."""
    (number, count), (_, second) = [*votes.most_common(2), ("", 0), ("", 0)][:2]
    fewest = _VOTES if len(number) > _SHORT else _VOTES_OF_SHORT
    return number if count >= fewest and count > second else ""


def _places(grey: Image.Image) -> Iterator[tuple[float, float, float]]:
    """Yields where bars are, the clearest first, and at which angle in degrees."""
    pixels = numpy.asarray(grey.filter(ImageFilter.GaussianBlur(1)))
    if min(pixels.shape) < _CELL * _WINDOW:
        return
    # In strips, because the slopes of a whole photograph take many times its memory.
    strips = [_slopes(pixels, top) for top in range(0, pixels.shape[0] - _CELL + 1, _STRIP)]
    across, along, mixed = (_mean(numpy.vstack(cells)) for cells in zip(*strips, strict=True))
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


def _slopes(pixels: Pixels, top: int) -> tuple[Pixels, Pixels, Pixels]:
    """Returns products of slopes in the cells of a strip, with the rows next to it."""
    start = max(0, top - 1)
    part = pixels[start : top + _STRIP + 1].astype(numpy.float32)
    down, right = (each[top - start :][:_STRIP] for each in numpy.gradient(part))
    return _cells(right * right), _cells(down * down), _cells(right * down)


def _cells(values: Pixels) -> Pixels:
    rows, columns = (side // _CELL for side in values.shape)
    cut = values[: rows * _CELL, : columns * _CELL]
    return cut.reshape(rows, _CELL, columns, _CELL).mean(axis=(1, 3), dtype=numpy.float64)


def _mean(cells: Pixels) -> Pixels:
    """Returns the mean of the cells around each cell."""
    half = _WINDOW // 2
    padded = numpy.pad(cells, ((half + 1, half), (half + 1, half)), mode="edge")
    sums = padded.cumsum(0).cumsum(1)
    size = _WINDOW
    total = sums[size:, size:] - sums[:-size, size:] - sums[size:, :-size] + sums[:-size, :-size]
    return total / size**2


def _read_place(source: Image.Image, x: float, y: float, angle: float, votes: Counter[str]) -> None:
    """Adds what is read on bands across the bars, until one number is certain."""
    if not any(_has_bars(_upright(source, x, y, angle + more, 1.0)) for more in _ANGLES[:3]):
        return
    for zoom in _ZOOMS:
        for more in _ANGLES:
            for band in _bands(_upright(source, x, y, angle + more, zoom)):
                votes.update(_numbers(band, _PLACED, try_rotate=False, try_invert=False))
                if _is_sure(votes):
                    return


def _upright(source: Image.Image, x: float, y: float, angle: float, zoom: float) -> Image.Image:
    """Returns the surroundings of a point, turned so that bars stand upright, and enlarged."""
    width, height = _CROP
    turn = numpy.radians(angle)
    cos, sin = float(numpy.cos(turn)) / zoom, float(numpy.sin(turn)) / zoom
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
    """Yields rows averaged over a height, as an image that is high enough to be read."""
    pixels = numpy.asarray(upright, dtype=numpy.float32)
    middle = pixels.shape[0] // 2
    for half in _BANDS:
        for offset in (0, -30, 30):
            rows = pixels[middle + offset - half : middle + offset + half + 1].mean(axis=0)
            yield _as_image(rows)
            yield _as_image(_sharpened(rows))


def _has_bars(upright: Image.Image) -> bool:
    """Whether dark and light alternate often enough: most places have an edge or two."""
    pixels = numpy.asarray(upright, dtype=numpy.float32)
    middle = pixels.shape[0] // 2
    rows = pixels[middle - _BANDS[1] : middle + _BANDS[1] + 1].mean(axis=0)
    above = rows - numpy.convolve(rows, numpy.ones(_LOCAL) / _LOCAL, mode="same")
    clear = above[numpy.abs(above) > _CLEAR * numpy.percentile(numpy.abs(above), 95)]
    return int(numpy.count_nonzero(numpy.diff(clear > 0))) >= _FEWEST_EDGES


def _sharpened(rows: Pixels) -> Pixels:
    kernel = numpy.ones(7) / 7
    return rows + 1.5 * (rows - numpy.convolve(rows, kernel, mode="same"))


def _as_image(rows: Pixels) -> Pixels:
    """Returns the rows twice as wide, in full contrast."""
    places = numpy.arange(0, len(rows) - 1, 0.5)
    wide = numpy.interp(places, numpy.arange(len(rows)), rows)
    low, high = numpy.percentile(wide, (2, 98))
    stretched = numpy.clip((wide - low) / max(high - low, 1.0), 0, 1) * 255
    return numpy.repeat(stretched.astype(numpy.uint8)[None, :], 24, axis=0)
