"""Photographs that are almost the same are found, others are not."""

from __future__ import annotations

from holdfast_catalog.photos.likeness import Seen, SeenPhotos, bands_of, nearest

HASH = "0123456789abcdef"


def changed(*bits: int) -> str:
    number = int(HASH, 16)
    for bit in bits:
        number ^= 1 << bit
    return f"{number:016x}"


def test_nearest_is_within_five_bits() -> None:
    near, far = Seen(3, "near", changed(1, 9, 60)), Seen(4, "far", changed(1, 5, 9, 20, 33, 60))
    assert nearest(HASH, [far, near]) == near
    assert nearest(HASH, [far]) is None
    assert nearest(HASH, [near, Seen(2, "same", HASH)]) == Seen(2, "same", HASH)


def test_plain_photographs_are_told_apart_by_their_colors() -> None:
    black, white, almost = "000000000000", "ffffffffffff", "080502000000"
    plain = "0" * 16
    seen = [Seen(1, "black", f"{plain}-{black}"), Seen(2, "white", f"{plain}-{white}")]
    assert nearest(f"{plain}-{almost}", seen) == seen[0]
    assert nearest(f"{plain}-808080808080", seen) is None
    assert len(bands_of(f"{plain}-{black}")) == 8


def test_five_bits_anywhere_leave_a_part_in_common() -> None:
    parts = set(bands_of(HASH))
    assert parts & set(bands_of(changed(0, 8, 16, 24, 32)))
    seen = SeenPhotos()
    seen.add(7, Seen(1, "a", HASH))
    assert [each.name for each in seen.alike(7, Seen(2, "b", changed(0, 8, 16, 24, 32)))] == ["a"]
    assert seen.alike(8, Seen(2, "b", HASH)) == []  # of another job
    assert seen.alike(7, Seen(1, "a", HASH)) == []  # itself
