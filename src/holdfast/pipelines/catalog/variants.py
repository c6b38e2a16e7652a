"""What makes an offer another thing than the one that is wanted, though its words are alike."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from holdfast.pipelines.catalog.normalising.units import unit_of
from holdfast.pipelines.catalog.normalising.wording import Wording

#: Words that make an offer something else than the product, unless the list has them too.
_OTHER_THINGS = frozenset(
    ["case", "cover", "sleeve", "protector", "skin", "strap", "charger", "cable", "adapter",
     "mount", "bracket", "stand", "holder", "replacement", "compatible", "refurbished", "renewed",
     "used", "openbox", "preowned", "broken", "parts", "spare", "manual", "box", "only", "empty",
     "dummy", "replica", "style", "toy", "sticker", "decal", "poster", "bundle", "lot", "remote",
     "filter", "warranty", "subscription", "rental"]
)  # fmt: skip
#: Words that tell variants of one product apart.
_VARIANTS = frozenset(
    ["pro", "max", "plus", "ultra", "mini", "lite", "air", "xl", "xs", "xxl", "se", "fe", "solar",
     "junior", "kids", "waterproof", "puppy", "kitten", "sensitive", "renewed", "refurbished"]
)  # fmt: skip
_COLORS = frozenset(
    ["black", "white", "gray", "silver", "gold", "red", "blue", "green", "yellow", "orange",
     "pink", "purple", "brown", "beige", "ivory", "navy", "teal", "turquoise", "graphite",
     "midnight", "starlight", "charcoal", "bronze", "copper", "cyan", "magenta", "lavender",
     "cream", "maroon", "violet", "burgundy", "khaki", "olive", "rose"]
)  # fmt: skip
#: Two letters that are no code.
_WORDS_OF_TWO = frozenset(
    ["tv", "hd", "pc", "no", "de", "la", "le", "el", "du", "us", "uk", "eu", "st", "vs", "my",
     "it", "is", "at", "as", "be"]
)  # fmt: skip
_LONGEST_CODE = 2
_CLOSE = Decimal("0.01")
_SAME_HEAD = 0.5
_WHOLE_TITLE = 0.8


def other_things(wanted: Wording, offered: Wording, precision: float) -> Iterator[str]:
    """`precision` is the share of the title that the list names."""
    others = (offered.words & _OTHER_THINGS) - wanted.words
    if precision >= _WHOLE_TITLE:  # a spare part that is wanted itself
        others -= {"replacement"}
    if others:
        yield f"looks like something else: {', '.join(sorted(others))}"
    elif offered.head is not None and wanted.head is None:
        if _share(offered.head, wanted) < _SAME_HEAD:
            yield "is something for it"
    elif wanted.head is not None and _share(wanted.head, offered) < _SAME_HEAD:
        yield "is what it is for, not the thing itself"


def other_variants(wanted: Wording, offered: Wording) -> Iterator[str]:
    """What contradicts the list."""
    yield from _other_words(wanted, offered)
    yield from _other_sizes(wanted, offered)
    yield from other_pack(wanted, offered)


def unnamed_variants(wanted: Wording, offered: Wording) -> list[str]:
    """What the list does not say, and would if it meant this one."""
    return sorted(_VARIANTS.intersection(_more(wanted, offered)))


def _more(wanted: Wording, offered: Wording) -> list[str]:
    return [word for word in offered.words - offered.covered(wanted) if not wanted.has(word)]


def _other_words(wanted: Wording, offered: Wording) -> Iterator[str]:
    missing, more = _more(offered, wanted), _more(wanted, offered)
    without = _VARIANTS.intersection(missing)
    if without:
        yield f"without {', '.join(sorted(without))}"
    for kind in (_COLORS.__contains__, _is_code):
        wrong, instead = sorted(filter(kind, more)), sorted(filter(kind, missing))
        if wrong and instead:
            yield f"{', '.join(wrong)} instead of {', '.join(instead)}"


def _is_code(word: str) -> bool:
    """As in AA, EF or size B."""
    if unit_of(word):
        return False
    is_short = word.isalpha() and (len(word) <= _LONGEST_CODE or len(set(word)) == 1)
    return is_short and word not in _WORDS_OF_TWO


def _other_sizes(wanted: Wording, offered: Wording) -> Iterator[str]:
    for unit, numbers in wanted.sizes.items():
        others = offered.sizes.get(unit)
        if others and not any(_is_close(a, b) for a in numbers for b in others):
            own, other = (min(each).normalize() for each in (numbers, others))
            yield f"{other:f} {unit} instead of {own:f} {unit}"


def _is_close(a: Decimal, b: Decimal) -> bool:
    return abs(a - b) <= _CLOSE * max(a, b)


def other_pack(wanted: Wording, offered: Wording) -> Iterator[str]:
    """A number of pieces may be written as a count: 12 pack, 12 count."""
    own, other = wanted.pack or 1, offered.pack or 1
    if own == other:
        return
    if own > 1 and str(own) not in offered.tokens:
        yield f"{'one' if other == 1 else f'a pack of {other}'}, not a pack of {own}"
    elif other > 1 and str(other) not in wanted.tokens and not _names_several(wanted, offered):
        yield f"a pack of {other}"


def _names_several(wanted: Wording, offered: Wording) -> bool:
    """Whether it is wanted in the plural, without a number: bags, batteries."""
    plurals = (word for word in wanted.words & offered.words if word.endswith("s"))
    return wanted.pack is None and any(len(w) > 3 and not w.endswith("ss") for w in plurals)


def _share(words: frozenset[str], within: Wording) -> float:
    if not words:
        return 1.0
    return sum(1 for word in words if within.has(word) or _has_alike(word, within)) / len(words)


def _has_alike(word: str, within: Wording) -> bool:
    """In the plural, or within a longer word."""
    return len(word) > _LONGEST_CODE + 1 and word.rstrip("s") in within.text
