"""Parses prices as whole minor units and a currency."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

_SYMBOLS = {
    "$": "USD",
    "US$": "USD",
    "€": "EUR",
    "£": "GBP",
    "¥": "JPY",
    "C$": "CAD",
    "A$": "AUD",
    "CHF": "CHF",
    "ZŁ": "PLN",
    "KČ": "CZK",
    "₹": "INR",
    "₫": "VND",
}
_MINOR_DIGITS = {"JPY": 0, "KRW": 0, "VND": 0, "CLP": 0, "ISK": 0, "KWD": 3, "BHD": 3, "TND": 3}
_MOST = Decimal(10_000_000)
#: Currencies in which everyday things cost thousands and millions.
_SMALL_UNITS = frozenset({"VND", "IDR", "KRW", "JPY", "CLP", "COP", "HUF", "ISK", "IRR", "LBP"})
_LONGEST = 40
#: What may follow a price for one piece.
_FOR_ONE = frozenset(("each", "ea", "ea.", "/ea", "/each", "per item", "per piece"))


@dataclass(frozen=True, slots=True)
class Money:
    minor: int
    currency: str


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount of money. `problem` says why there is none although something was given."""

    money: Money | None = None
    problem: str | None = None


def minor_digits(currency: str) -> int:
    return _MINOR_DIGITS.get(currency, 2)


def as_number(minor: int, currency: str) -> float:
    """Returns a number for cells of a table: 12.5, 12.0."""
    return float(Decimal(minor).scaleb(-minor_digits(currency)))


def price_text(minor: int, currency: str) -> str:
    digits = minor_digits(currency)
    return f"{Decimal(minor).scaleb(-digits):,.{digits}f} {currency}"


def amount(value: Any, currency: str) -> Amount:
    """Parses an amount; `currency` is that of amounts that name none."""
    if value is None or isinstance(value, bool):
        return Amount()
    text = str(value).strip().replace("\u00a0", " ")
    if not text:
        return Amount()
    shown = text[:_LONGEST]
    if len(text) > _LONGEST:
        return Amount(problem=f"{shown!r} is not a price")
    own, number = _split(text)
    plain = repr(value) if isinstance(value, int | float) else _plain(number)
    if plain is None:
        return Amount(problem=f"{shown!r} is not clearly a price")
    return _amount(plain, own or currency, shown)


def currency_named(text: str) -> str | None:
    """Returns the ISO code of a symbol or a code; None if it is neither."""
    word = text.strip().upper()
    if word in _SYMBOLS:
        return _SYMBOLS[word]
    return word if len(word) == 3 and word.isascii() and word.isalpha() else None


def _amount(plain: str, currency: str, shown: str) -> Amount:
    try:
        number = Decimal(plain)
    except InvalidOperation:
        return Amount(problem=f"{shown!r} is not a price")
    most = 1000 * _MOST if currency in _SMALL_UNITS else _MOST
    if not number.is_finite() or abs(number) > most:
        return Amount(problem=f"the price {shown} is absurd")
    if number < 0:
        return Amount(problem=f"the price {shown} is negative")
    if number == 0:
        return Amount(problem="the price is 0")
    minor = int(number.scaleb(minor_digits(currency)).to_integral_value("ROUND_HALF_UP"))
    return Amount(Money(minor, currency)) if minor else Amount(problem="the price is 0")


def _split(text: str) -> tuple[str | None, str]:
    """Returns the currency that the text names before or after its number, and the number."""
    start = next((at for at, char in enumerate(text) if char.isdecimal() or char in "-+."), None)
    if start is None:
        return None, text
    end = max(at for at, char in enumerate(text) if char.isdecimal()) + 1 if _has(text) else start
    head, tail = text[:start], text[end:]
    if head.strip() in ("-", "+"):
        head, start = "", text.index(head.strip())
    sign = "-" if head.strip().startswith("-") else ""
    before, after = head.strip().lstrip("-+").strip(), tail.strip()
    if after.casefold() in _FOR_ONE:
        after = ""
    named = [currency_named(part) for part in (before, after) if part]
    if len(named) == 2 and before == "$" and str(named[1]).endswith("D"):  # $450 CAD
        named = named[1:]
    if None in named or len(set(named)) > 1:
        return None, text
    return named[0] if named else None, sign + text[start:end]


def _has(text: str) -> bool:
    return any(char.isdecimal() for char in text)


def _plain(number: str) -> str | None:
    """Returns the number with a point before the decimals and nothing else; None if that would be a
    guess."""
    spaced = number.strip().replace("'", " ").replace("’", " ")
    sign = spaced[:1] if spaced[:1] in "+-" else ""
    first, *groups = spaced[len(sign) :].split() or [""]
    if groups and not (first.isdecimal() and len(first) <= 3 and all(map(_is_group, groups))):
        return None
    body = "".join((first, *groups))
    if not body or not all(char.isdecimal() or char in ".," for char in body):
        return None
    point, comma = body.rfind("."), body.rfind(",")
    if point >= 0 and comma >= 0:
        decimal, thousands = (".", ",") if point > comma else (",", ".")
        before, _, decimals = body.partition(decimal)
        is_clear = decimals.isdecimal() and all(map(_is_group, before.split(thousands)[1:]))
        return f"{sign}{before.replace(thousands, '')}.{decimals}" if is_clear else None
    mark = "." if point >= 0 else ","
    parts = body.split(mark)
    if len(parts) > 2:
        whole = all(len(part) == 3 for part in parts[1:])
        return sign + "".join(parts) if whole else None
    if len(parts) == 2 and len(parts[1]) == 3 and parts[0] not in ("", "0"):
        # 1,299 is a thousand if points are decimals; 1.299 may be either.
        return sign + "".join(parts) if mark == "," else None
    return sign + body.replace(",", ".")


def _is_group(part: str) -> bool:
    """Whether the part has three digits, and no fourth."""
    return part[:3].isdecimal() and len(part) >= 3 and not part[3:4].isdecimal()
