"""Defines units of size, weight and number: how each is written here, and sizes that can be
compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import cache

from holdfast_catalog.normalising.word_files import word_list

#: Units that are compared in another: 1 kg is 1000 g.
_MULTIPLES = {
    "l": ("ml", 1000),
    "cl": ("ml", 10),
    "kg": ("g", 1000),
    "tb": ("gb", 1000),
    "cm": ("mm", 10),
    "m": ("mm", 1000),
    "khz": ("hz", 1000),
    "ah": ("mah", 1000),
    "kw": ("w", 1000),
    "ft": ("in", 12),
    "mhz": ("hz", 10**6),
    "ghz": ("hz", 10**9),
    "lb": ("oz", 16),
    "pt": ("oz", 16),
    "qt": ("oz", 32),
    "gal": ("oz", 128),
}
#: The same quantity in another system, and the factor between them. An ounce is of weight or
#: volume.
_ACROSS = {
    "in": (("mm", Decimal("25.4")),),
    "mm": (("in", 1 / Decimal("25.4")),),
    "oz": (("g", Decimal("28.35")), ("ml", Decimal("29.57"))),
    "g": (("oz", 1 / Decimal("28.35")),),
    "ml": (("oz", 1 / Decimal("29.57")),),
}
_CLOSE = Decimal("0.02")
_CLOSE_VOLUME = Decimal("0.03")  # 100 ml are sold as 3.3 oz
_EXACT = Decimal("0.01")
_ABOUT = Decimal("0.04")
_LEAST_ROUNDED = 10
_LONGEST_NUMBER = 12


@cache
def _units() -> Mapping[str, str]:
    """Returns each spelling of a unit, with the unit."""
    file = word_list("units")
    return {unit: unit for unit in file.names("units")} | file.by_word("units")


def unit_of(word: str) -> str | None:
    """Returns how the unit is written here."""
    return _units().get(word)


def base_unit(unit: str) -> str:
    return _MULTIPLES.get(unit, (unit, 1))[0]


def size_of(number: str, unit: str) -> tuple[str, Decimal]:
    """Returns the size in the unit in which it is compared."""
    base, times = _MULTIPLES.get(unit, (unit, 1))
    return base, Decimal(number[:_LONGEST_NUMBER]) * times


def has_size(sizes: Mapping[str, Iterable[Decimal]], unit: str, number: Decimal) -> bool:
    """Whether one of the sizes is this one, in this unit or converted: 66 cm is 26 in."""
    for each in sizes.get(unit, ()):
        if abs(each - number) <= _EXACT * number or _is_rounded(number, each):
            return True
    return any(
        abs(each - number * times) <= (_CLOSE_VOLUME if "ml" in (unit, other) else _CLOSE) * each
        for other, times in _ACROSS.get(unit, ())
        for each in sizes.get(other, ())
    )


def _is_rounded(number: Decimal, size: Decimal) -> bool:
    """Whether one is the other without its decimals: people leave them out, so an 18 cu ft
    refrigerator has 18.3, one of 15 has 14.8."""
    if size == size // 1 or number != number // 1:
        return False
    if abs(size - number) <= _ABOUT * number:
        return True
    return number >= _LEAST_ROUNDED and number == size // 1


def is_number(text: str) -> bool:
    return bool(text) and text.replace(".", "", 1).isdecimal()


def spelled_alike(words: Iterable[str]) -> Iterator[str]:
    """Distinguishes spellings: CT 26 is a name, 26 ct a number of pieces."""
    before, units = "", _units()
    for word in words:
        yield word if word == "ct" and not is_number(before) else units.get(word, word)
        before = word
