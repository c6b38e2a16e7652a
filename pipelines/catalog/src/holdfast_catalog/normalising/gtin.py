"""Checks article numbers: EAN, UPC and GTIN with their check digit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_LENGTHS = (8, 12, 13, 14)
_DIGITS = 14
_ROUNDED = "000000"  # the end of a number that a spreadsheet shows with six digits
_SPACING = str.maketrans("", "", " -\u00a0.\t'")


@dataclass(frozen=True, slots=True)
class ArticleNumber:
    """An article number.

    `gtin` has 14 digits; `problem` says why there is none although something was given."""

    gtin: str | None = None
    problem: str | None = None


NONE = ArticleNumber()


def article_number(value: Any) -> ArticleNumber:
    if value is None or isinstance(value, bool):
        return NONE
    if isinstance(value, float):
        if not value.is_integer():
            return ArticleNumber(problem=f"{value} is not an article number")
        value = int(value)
    text = str(value).strip()
    if not text:
        return NONE
    if _is_scientific(text):
        return ArticleNumber(
            problem=f"the article number is written as {text[:30]}: its last digits are lost"
        )
    digits = text.translate(_SPACING)
    if not (digits.isascii() and digits.isdecimal()):
        return ArticleNumber(problem=f"{text[:30]!r} is not an article number")
    return _checked(digits)


def check_digit(digits: str) -> int:
    """Returns the check digit for the digits before it."""
    weighted = sum(
        int(digit) * (3 if at % 2 == 0 else 1) for at, digit in enumerate(reversed(digits))
    )
    return -weighted % 10


def as_printed(gtin: str) -> str:
    """Returns the 14 digits as they are printed below a barcode: a UPC has 12, leading zeros
    included."""
    digits = gtin.lstrip("0")
    return digits.zfill(next(length for length in _LENGTHS if len(digits) <= length))


def _checked(digits: str) -> ArticleNumber:
    if len(digits) not in _LENGTHS:
        if len(digits) < _LENGTHS[0] or len(digits) > _DIGITS:
            return ArticleNumber(problem=f"an article number does not have {len(digits)} digits")
        # A spreadsheet drops leading zeros.
        digits = digits.zfill(12 if len(digits) < 12 else 13)
    if len(digits) >= 12 and digits.endswith(_ROUNDED) and int(digits):
        return ArticleNumber(
            problem=f"the article number {digits} is rounded: its last digits are lost"
        )
    if int(digits[-1]) != check_digit(digits[:-1]):
        return ArticleNumber(problem=f"the check digit of {digits} is wrong")
    if not int(digits):
        return ArticleNumber(problem=f"{digits} is not an article number")
    return ArticleNumber(digits.zfill(_DIGITS))


def _is_scientific(text: str) -> bool:
    lower = text.lower()
    head, e, exponent = lower.partition("e")
    return bool(e) and exponent.lstrip("+").isdecimal() and head.replace(".", "").isdecimal()
