"""The child process that opens images: orientation, thumbnail, hash, barcodes, text.

It reads one request per line from standard input and answers each with one line. Images are the
most dangerous input there is: an error here ends this process and nothing else.
"""

from __future__ import annotations

import base64
import io
import os
import resource
import sys
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from holdfast_catalog.photos import NO_MEMORY
from holdfast_catalog.photos.barcodes import article_numbers

#: Pillow opens many more. One of them starts Ghostscript.
_FORMATS = ("JPEG", "PNG", "WEBP", "GIF")
_HEIC_BRANDS = (b"heic", b"heix", b"hevc", b"mif1", b"msf1")
_THUMBNAIL = (320, 320)
_LARGEST_SIDE = 1600
_TEXT_SIDE = 1280
_REDUCED = 1.2  # a photograph that was larger than this is examined again, as a whole
_HASH_SIDE = 8
_MOST_LINES = 40
_SUREST = 0.5
_TOO_MUCH = {"code": NO_MEMORY, "error": "the image needs too much memory"}


class Unreadable(Exception):
    """Raised if the image cannot be used; the first argument is its error code."""


def main() -> None:
    megabytes, most_pixels = int(sys.argv[1]), int(sys.argv[2])
    limit = megabytes * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # whatever libraries print is not an answer
    reader = _Reader(most_pixels)
    for line in sys.stdin.buffer:
        request = orjson.loads(line)
        answers.write(orjson.dumps(_answer(reader, request)) + b"\n")


def _answer(reader: _Reader, request: dict[str, Any]) -> dict[str, Any]:
    try:
        return reader.read(request["path"], text=bool(request["text"]))
    except Unreadable as error:
        return {"code": error.args[0], "error": error.args[1]}
    except OSError as error:
        cut = "truncated" in str(error)  # Pillow's own text, with numbers that mean nothing here
        message = "it is cut off: the rest is missing" if cut else f"it cannot be read: {error}"
        return {"code": "MEDIA_FORMAT_ERROR", "error": message[:300]}
    except MemoryError:
        return dict(_TOO_MUCH)
    except Exception as error:  # of any library, about any image
        return _library_error(error)


def _library_error(error: Exception) -> dict[str, Any]:
    """Returns the error of a library.

    Some put a whole traceback into the text; its end says what happened."""
    text = str(error).strip()
    if "bad_alloc" in text or "allocate" in text:
        return dict(_TOO_MUCH)
    last = text.splitlines()[-1].strip() if text else ""
    return {"code": "MEDIA_FORMAT_ERROR", "error": f"{type(error).__name__}: {last}"[:300]}


def _reads_heic() -> bool:
    """Prepares to read HEIC, where its library is installed (the extra `heic`)."""
    try:
        from pillow_heif import register_heif_opener
    except ModuleNotFoundError:
        return False
    register_heif_opener()
    return True


def _why_unknown(path: str) -> str:
    with Path(path).open("rb") as file:
        head = file.read(12)
    if head[4:8] == b"ftyp" and head[8:12] in _HEIC_BRANDS:
        return "HEIC needs another package, holdfast-catalog[heic]; or convert it to JPEG"
    return "it is not an image"


class _Reader:
    def __init__(self, most_pixels: int) -> None:
        from PIL import Image

        self._formats = [*_FORMATS, "HEIF"] if _reads_heic() else list(_FORMATS)
        Image.MAX_IMAGE_PIXELS = None  # we refuse by our own limit, with a code
        self._most_pixels = most_pixels
        self._ocr: Any = None

    def read(self, path: str, text: bool) -> dict[str, Any]:
        image = self._opened(path)
        if text:
            return {"text": self._text(image)}
        stream = io.BytesIO()
        _reduced(image, _THUMBNAIL).save(stream, "WEBP", quality=80)
        width, height = self._size_of(path, image)
        return {
            "width": width,
            "height": height,
            "hash": difference_hash(image),
            "thumbnail": base64.b64encode(stream.getvalue()).decode(),
            "barcodes": article_numbers(image, partial(self._whole, path, image)),
        }

    def _size_of(self, path: str, upright: Any) -> tuple[int, int]:
        """Returns width and height of the photograph as it was taken, upright."""
        from PIL import Image

        width, height = Image.open(path, formats=self._formats).size
        is_turned = (width > height) is not (upright.width > upright.height)
        return (height, width) if is_turned else (width, height)

    def _whole(self, path: str, reduced: Any) -> Any:
        """Returns the photograph as it was taken, in grey; None if it was not larger."""
        from PIL import Image, ImageOps

        image = Image.open(path, formats=self._formats)
        is_larger = max(image.size) > max(reduced.size) * _REDUCED
        if not is_larger or image.width * image.height > self._most_pixels:
            return None
        image.draft("L", image.size)
        ImageOps.exif_transpose(image, in_place=True)
        return _in_8_bits(image, "L")

    def _opened(self, path: str) -> Any:
        from PIL import Image, ImageOps, UnidentifiedImageError

        try:
            image = Image.open(path, formats=self._formats)
        except UnidentifiedImageError:
            raise Unreadable("MEDIA_FORMAT_ERROR", _why_unknown(path)) from None
        if image.format in ("JPEG", "MPO"):
            # Decoded at a smaller size from the start, so that the whole of it is never in memory.
            # Both sides are given: the shorter one alone would keep it large.
            longest = max(image.size)
            sides = [side * _LARGEST_SIDE // longest for side in image.size]
            image.draft("RGB", (max(1, sides[0]), max(1, sides[1])))
        if image.width * image.height > self._most_pixels:
            raise Unreadable(
                "MEDIA_TOO_LARGE",
                f"{image.width:,} by {image.height:,} is more than {self._most_pixels:,} pixels",
            )
        image.thumbnail((_LARGEST_SIDE, _LARGEST_SIDE))  # first: what follows makes copies
        ImageOps.exif_transpose(image, in_place=True)
        return _in_8_bits(image, "RGB")

    def _text(self, image: Any) -> list[str]:
        """Returns lines from the largest letters to the smallest: the product's name comes
        first."""
        import numpy

        if self._ocr is None:
            import logging

            from rapidocr import RapidOCR

            logging.getLogger("RapidOCR").setLevel(logging.ERROR)
            threads = {"EngineConfig.onnxruntime.intra_op_num_threads": 1}
            self._ocr = RapidOCR(params=threads)
        image.thumbnail((_TEXT_SIDE, _TEXT_SIDE))
        result = self._ocr(numpy.asarray(image)[:, :, ::-1])
        if result.txts is None:
            return []
        found = zip(result.txts, result.scores, result.boxes, strict=True)
        lines = [(_height(box), text) for text, score, box in found if score >= _SUREST]
        return [text for _, text in sorted(lines, key=lambda line: -line[0])][:_MOST_LINES]


def _reduced(image: Any, size: tuple[int, int]) -> Any:
    """Returns a copy that fits into a size; never a larger one."""
    from PIL import ImageOps

    return ImageOps.contain(image, size) if max(image.size) > max(size) else image


def _in_8_bits(image: Any, mode: str) -> Any:
    """Converts to 8 bits.

    Pillow makes everything brighter than 255 white: of 16 bits, the upper ones are taken."""
    import numpy
    from PIL import Image

    if image.mode.startswith("I"):
        image = Image.fromarray((numpy.asarray(image) >> 8).astype(numpy.uint8))
    return image if image.mode == mode else image.convert(mode)


def difference_hash(image: Any) -> str:
    """Returns 64 bits that say where the image gets brighter, the same at every size; then the mean
    colors of its quarters."""
    from PIL import Image

    # Not converted unless necessary: that copies the whole image.
    colored = image if image.mode == "RGB" else image.convert("RGB")
    small = colored.resize((_HASH_SIDE + 1, _HASH_SIDE), Image.Resampling.BOX).convert("L")
    pixels = list(small.getdata())
    bits = 0
    for row in range(_HASH_SIDE):
        for column in range(_HASH_SIDE):
            at = row * (_HASH_SIDE + 1) + column
            bits = bits << 1 | (pixels[at] > pixels[at + 1])
    tints = colored.resize((2, 2), Image.Resampling.BOX).tobytes()
    return f"{bits:016x}-{tints.hex()}"


def _height(box: Any) -> float:
    return float(max(point[1] for point in box) - min(point[1] for point in box))


if __name__ == "__main__":
    main()
