"""Finds which photographs of a job are almost the same: another size, another compression."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

#: Hashes that differ in at most this many of 64 bits are of the same photograph.
MOST_BITS = 5
_BAND_DIGITS = 2
_HASH_DIGITS = 16
#: Out of 255. Compression and size change the mean of a quarter by less.
_MOST_TINT = 16
_APART = 64
_MOST_SEEN = 2_000


class Seen(NamedTuple):
    seq: int
    name: str
    hash: str


def bands_of(photo_hash: str) -> list[tuple[int, str]]:
    """Returns parts of a hash. Of eight, at least three are equal if five bits differ."""
    steps = range(0, _HASH_DIGITS, _BAND_DIGITS)
    return [(at // _BAND_DIGITS, photo_hash[at : at + _BAND_DIGITS]) for at in steps]


def nearest(photo_hash: str, others: Iterable[Seen]) -> Seen | None:
    """Returns the most similar one; of equals, the first row."""
    ranked = [(distance(photo_hash, other.hash), other.seq, other) for other in others]
    near = [each for each in ranked if each[0] <= MOST_BITS]
    return min(near)[2] if near else None


def distance(one: str, other: str) -> int:
    """Returns the distance in bits.

    Plain photographs have no bits that distinguish them: then their colors do."""
    if not _is_same_tint(one[_HASH_DIGITS + 1 :], other[_HASH_DIGITS + 1 :]):
        return _APART
    return (_bits(one) ^ _bits(other)).bit_count()


def _bits(photo_hash: str) -> int:
    return int(photo_hash[:_HASH_DIGITS], 16)


def _is_same_tint(one: str, other: str) -> bool:
    """Whether the tints are the same; hashes of earlier versions have none."""
    if not one or not other:
        return True
    pairs = zip(bytes.fromhex(one), bytes.fromhex(other), strict=True)
    return all(abs(mine - its) <= _MOST_TINT for mine, its in pairs)


class SeenPhotos:
    """The photographs that this process has read recently: those of a batch are not written yet
    when the next ones are compared."""

    def __init__(self) -> None:
        self._photos: OrderedDict[tuple[int, int], tuple[Seen, int]] = OrderedDict()

    def add(self, job_id: int, photo: Seen) -> None:
        self._photos[job_id, photo.seq] = photo, _bits(photo.hash)
        if len(self._photos) > _MOST_SEEN:
            self._photos.popitem(last=False)

    def alike(self, job_id: int, photo: Seen) -> list[Seen]:
        """Returns those of a job that differ in a few bits, apart from itself."""
        own = _bits(photo.hash)
        return [
            other
            for (job, seq), (other, bits) in self._photos.items()
            if (own ^ bits).bit_count() <= MOST_BITS and job == job_id and seq != photo.seq
        ]
