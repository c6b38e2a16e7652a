"""Words of titles and descriptions, as they are compared and searched for."""

from __future__ import annotations

from typing import Any

from holdfast.text_forms import normal_form

_LONGEST = 2000
_MOST_WORDS = 60
#: Units, and how each is written here.
_UNITS = {
    **{
        unit: unit
        for unit in [
            "gb",
            "tb",
            "mb",
            "mm",
            "cm",
            "in",
            "ft",
            "kg",
            "ml",
            "w",
            "v",
            "oz",
            "lb",
            "qt",
            "hz",
            "mah",
            "pack",
        ]
    },
    "inch": "in",
    "inches": "in",
    "quart": "qt",
    "quarts": "qt",
    "ounce": "oz",
    "ounces": "oz",
    "watt": "w",
    "watts": "w",
    "volt": "v",
    "lbs": "lb",
    "pound": "lb",
    "feet": "ft",
    "foot": "ft",
    "liter": "l",
    "litre": "l",
    "liters": "l",
    "l": "l",
    "pk": "pack",
}
#: Words that say nothing about which product it is.
STOP_WORDS = frozenset(
    [
        "a",
        "an",
        "and",
        "the",
        "of",
        "for",
        "with",
        "in",
        "on",
        "by",
        "to",
        "or",
        "from",
        "new",
        "item",
        "pc",
        "pcs",
        "piece",
        "pieces",
        "set",
        "x",
        "each",
        "approx",
        "color",
        "colour",
        "brand",
        "model",
    ]
)


def text_of(value: Any) -> str:
    """One line without control characters."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return " ".join(str(value)[:_LONGEST].replace("\0", " ").split())


def words_of(text: str) -> list[str]:
    """In order, each once. Marks are removed: Nestlé is nestle. A number is separated from its
    unit, however they are written: 128GB and 128 gb are the same two words."""
    folded = normal_form("NFKD", text[:_LONGEST]).casefold().replace('"', " in ")
    kept = "".join(_kept(character) for character in folded)
    words = (part for word in kept.split() for part in _with_unit(word))
    return list(dict.fromkeys(words))[:_MOST_WORDS]


def _with_unit(word: str) -> tuple[str, ...]:
    number = word.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = word[len(number) :]
    if number and unit in _UNITS and number.isdecimal():
        return number, _UNITS[unit]
    return (_UNITS.get(word, word),)


def telling_words(text: str) -> list[str]:
    return [word for word in words_of(text) if word not in STOP_WORDS]


def compact(text: str) -> str:
    """Letters and digits alone: how model numbers are compared."""
    folded = normal_form("NFKD", text[:_LONGEST]).casefold()
    return "".join(character for character in folded if character.isalnum())


def _kept(character: str) -> str:
    if character.isalnum():
        return character
    return "" if "\u0300" <= character <= "\u036f" else " "
