"""Finds out how many pieces are sold together: a pack of 3 is not the same as one."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast_catalog.normalising.words import TIMES, tokens_of

_CONTAINERS = frozenset(["pack", "set", "case", "box", "bundle", "carton", "tray"])
_AMOUNTS = frozenset(["ml", "cl", "l", "g", "kg", "oz", "lb"])
_NAMED = {"twin": 2, "twinpack": 2, "double": 2, "triple": 3}
_LARGEST = 500


def pack_of(text: str) -> int | None:
    """Returns the number of pieces; None if the text does not give one."""
    tokens = tokens_of(text)
    for at, token in enumerate(tokens):
        number = _number_at(tokens, at) if token in _CONTAINERS else _times(tokens, at)
        if number is not None and 1 < number <= _LARGEST:
            return number
    return 1 if "single" in tokens else None


def _number_at(tokens: Sequence[str], at: int) -> int | None:
    """Returns the number in "3 pack", "pack of 3" or "twin pack"."""
    before = tokens[at - 1] if at else ""
    after = tokens[at + 1 : at + 3]
    if len(after) == 2 and after[0] == "of" and after[1].isdecimal():
        return int(after[1][:4])
    if tokens[at] == "pack":
        return int(before[:4]) if before.isdecimal() else _NAMED.get(before)
    return None


def _times(tokens: Sequence[str], at: int) -> int | None:
    """Returns the number in "3 x 500 ml"."""
    part = tokens[at : at + 4]
    if len(part) == 4 and part[0].isdecimal() and part[1] == TIMES and part[3] in _AMOUNTS:
        return int(part[0][:4]) if part[2].replace(".", "", 1).isdecimal() else None
    return None
