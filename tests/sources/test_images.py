"""Images are recognized by content, with their size; broken ones say what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InputError
from holdfast.sources.images import Image, image_in
from tests.pictures import gif, jpeg, png, webp

WHOLE = [
    (png(640, 480), "image/png"), (gif(640, 480), "image/gif"), (jpeg(640, 480), "image/jpeg"),
    (webp(b"VP8X", 640, 480), "image/webp"), (webp(b"VP8L", 640, 480), "image/webp"),
    (webp(b"VP8 ", 640, 480), "image/webp"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "media_type"), WHOLE)
def test_size_and_type_are_read_whatever_the_name(
    content: bytes, media_type: str, tmp_path: Path
) -> None:
    path = tmp_path / "list.csv"
    path.write_bytes(content)
    assert image_in(path) == Image(media_type, 640, 480)


@pytest.mark.parametrize("content", [b"", b"title\nchair\n", b"RIFF0000WAVE", b"\xff\xd8", b"GIF"])
def test_what_is_not_an_image_is_none(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "photo.png"
    path.write_bytes(content)
    assert image_in(path) is None


@pytest.mark.parametrize(("content", "media_type"), WHOLE)
def test_image_that_was_cut_off_is_refused(content: bytes, media_type: str, tmp_path: Path) -> None:
    path = tmp_path / "photo"
    for length in range(12, len(content) - 5):
        path.write_bytes(content[:length])
        with pytest.raises(InputError, match="photo is a damaged image"):
            image_in(path)


@pytest.mark.parametrize("content", [png(0, 5), webp(b"VP8X", 100_000, 100_000), jpeg(0, 0)])
def test_image_without_a_sensible_size_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "photo"
    path.write_bytes(content)
    with pytest.raises(InputError):
        image_in(path)


@given(
    start=st.sampled_from([content[:12] for content, _ in WHOLE] + [b"\xff\xd8\xff"]),
    rest=st.binary(max_size=200),
)
def test_any_bytes_are_an_image_or_a_clear_error(
    start: bytes, rest: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(start + rest)
    try:
        image_in(path)
    except InputError as error:
        assert error.hint
