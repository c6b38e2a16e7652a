"""Finds what makes an offer another thing than the wanted one, although its words are alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from holdfast_catalog.normalising.units import has_size, unit_of
from holdfast_catalog.normalising.vocabulary import (
    COLOR,
    Kind,
    exclusive_group,
    is_color_of,
    is_remark,
    kind_of,
    phrases_in,
    synonyms,
)
from holdfast_catalog.normalising.wording import Wording

#: What belongs to a product and is sold separately, unless the list has it too.
_ACCESSORIES = frozenset(
    ["case", "cover", "sleeve", "protector", "skin", "strap", "charger", "cable", "adapter",
     "mount", "bracket", "stand", "holder", "manual", "sticker", "decal", "poster", "remote",
     "filter", "warranty", "subscription", "battery", "cartridge", "toner", "ink", "refill",
     "lid", "toy"]
)  # fmt: skip
#: Words that make an offer something else than the product, wherever they are.
_OTHER_STATES = frozenset(
    ["replacement", "compatible", "refurbished", "renewed", "used", "openbox", "preowned",
     "secondhand", "broken", "parts", "spare", "empty", "dummy", "replica", "style", "bundle",
     "lot", "rental"]
)  # fmt: skip
#: Words for a thing that is not new.
_NOT_NEW = _OTHER_STATES - {"replacement", "compatible", "spare", "parts", "style", "lot", "bundle"}
_KINDS_OF_ACCESSORY = frozenset(
    [
        "wall",
        "surge",
        "carrying",
        "travel",
        "charging",
        "power",
        "remote",
        "storage",
        "dust",
        "desk",
    ]
)
#: Words that say, before another one, how it works: a manual pruner.
_ADJECTIVES = frozenset(("manual", "remote", "refill"))
_SECOND_HAND = frozenset(("preowned", "secondhand"))
_IN_TWO_WORDS = frozenset(("openbox", "preowned", "secondhand"))
#: If a product is sold without its parts, this is the product: tool only, body only.
_WHOLE = frozenset(("tool", "body", "unit", "console", "bare"))
#: Words that distinguish variants of one product.
_VARIANTS = frozenset(
    ["pro", "max", "plus", "ultra", "mini", "lite", "air", "xl", "xs", "xxl", "se", "fe", "ti",
     "super", "solar", "junior", "kids", "waterproof", "puppy", "kitten", "sensitive", "deluxe",
     "zero", "diet", "decaf", "organic", "renewed", "refurbished"]
)  # fmt: skip
#: Words that people say about who uses a thing or how, and titles need not.
_OF_USERS = frozenset(
    ["kids", "junior", "waterproof", "sensitive", "organic", "solar", "deluxe", "decaf", "air"]
)  # fmt: skip
#: Editions, of which there is often no other: Mario Kart 8 Deluxe.
_EDITIONS = frozenset(("deluxe",))
#: Names in which such a word distinguishes no variant: Ryobi ONE+, Intel Core Ultra.
_NAMES = frozenset((("one", "plus"), ("core", "ultra"), ("4k", "ultra")))
#: After a brand they praise it: Dawn Ultra.
_OF_BRANDS = frozenset(("ultra", "super", "plus", "pro"))
#: Sold together with more than the list names.
_SEVERAL_THINGS = frozenset(("combo", "kit", "bundle"))
#: Words of two letters that are not codes.
_WORDS_OF_TWO = frozenset(
    ["tv", "hd", "pc", "no", "de", "la", "le", "el", "du", "us", "uk", "eu", "st", "vs", "my",
     "it", "is", "at", "as", "be", "en", "up", "go"]
)  # fmt: skip
_LONGEST_CODE = 2
_PAIR = 2
_SEVERAL_PACKED = frozenset(("combo", "multipack", "multi"))
_CACHED = 8192
ACCESSORY = "accessory"
_PLURALS = {"knives": "knife", "knifes": "knife", "shelves": "shelf"}
_SAME_HEAD = 0.5
_SHORTEST_CODE = 5
_SHORTEST_NUMBER = 3
_LONGEST_ENDING = 6
_WHOLE_TITLE = 0.8


def other_things(wanted: Wording, offered: Wording, precision: float) -> dict[str, str]:
    """Returns doubts whether it is another thing.

    `precision` is the share of the title that the list names."""
    others = {*_accessories(offered, wanted), *_states(offered, wanted)}
    is_wanted = bool(offered.thing) and has_noun(wanted, offered.thing)
    if precision >= _WHOLE_TITLE or is_wanted:  # a spare part that is wanted itself
        others -= {"replacement"}
    if _is_accessory_for(wanted, offered):
        return {ACCESSORY: "is an accessory for it"}
    if others:
        return {"other_thing": f"looks like something else: {', '.join(sorted(others))}"}
    if offered.head is not None and wanted.head is None:
        return {}
    if wanted.thing and has_noun(offered, wanted.thing):
        return {}
    if wanted.head is not None and _share(wanted.head, offered) < _SAME_HEAD:
        return {"product_itself": "is the product itself, not the accessory"}
    return {}


def _is_accessory_for(wanted: Wording, offered: Wording) -> bool:
    if offered.head is None or wanted.head is not None:
        return False
    # All that is wanted may be before "for": a lens for a mount that the list leaves out.
    is_thing = _share(frozenset((offered.noun,)), wanted) == 1 or wanted.words <= offered.head
    is_thing |= has_noun(wanted, offered.noun)
    return not is_thing and _is_for_wanted(wanted, offered, offered.head)


def _is_for_wanted(wanted: Wording, offered: Wording, head: frozenset[str]) -> bool:
    """Whether, the brand aside, the row mentions the accessory no more than the thing it belongs to
    ("bike mat")."""
    behind = sum(_has_or_alike(word, wanted) for word in offered.words - head)
    named = sum(_has_or_alike(word, wanted) for word in head - {offered.tokens[0]})
    return named <= behind


def missing_accessory(wanted: Wording, offered: Wording, missing: frozenset[str]) -> dict[str, str]:
    lacking = sorted(missing.intersection(_accessories(wanted, offered)))
    return {"no_accessory": f"{lacking[0]} is not in its title"} if lacking else {}


def _accessories(text: Wording, other: Wording) -> Iterator[str]:
    """Yields the accessories of a text if the other names none of them.

    Before a word that both have, it only describes that word: stand mixer, battery lawn mower.
    After a number it is what comes with it."""
    main = text.main[: text.for_at] if text.for_at else text.main
    if any(_is_accessory(word) and has_noun(other, word) for word in main):
        return
    names = (name for each in phrases_in(tuple(other.tokens)).values() for name in each)
    if any(name[-1] == text.thing for name in names):  # a power bank is a portable charger
        return
    for earlier, before, word, following in zip(
        ("", "", *main), ("", *main), main, (*main[1:], ""), strict=False
    ):
        is_modifier = (word != text.thing and (word, following) != ("cover", "and")) or (
            following.isalpha() and (_is_said(following, other) or word in _ADJECTIVES)
        )
        is_part = is_modifier or _is_aside(before) or _is_refill_of(before, word, other)
        # A monitor and wall mount, but not a Black and Decker battery.
        is_part |= before == "and" or (earlier == "and" and before in _KINDS_OF_ACCESSORY)
        if _is_accessory(word) and not is_part:
            yield word


def _is_said(word: str, other: Wording) -> bool:
    """Whether the other says the word, and it is not a name: a barbecue cover Weber is a cover."""
    return kind_of(word) is not Kind.NAME and other.has(word)


def _is_aside(before: str) -> bool:
    """Whether it only comes with it, or does not; or is the name of a mount or a stand."""
    is_name = len(before) == 1 and before.isalpha()
    return before.isdecimal() or before in ("no", "year") or is_name


def _is_refill_of(before: str, word: str, other: Wording) -> bool:
    """Whether it is a refill.

    Things that are used up are wanted in the plural: pads are pad refills, a mop is not."""
    return word.startswith("refill") and not before.endswith("s") and other.has(f"{before}s")


@lru_cache(maxsize=_CACHED)
def _is_accessory(word: str) -> bool:
    """Whether the word is an accessory, also in the plural, except for batteries, which are a thing
    of their own."""
    is_plural = word.endswith("s") and word != "batteries"
    return word in _ACCESSORIES or (is_plural and _singular(word) in _ACCESSORIES)


def _singular(word: str) -> str:
    if word in _PLURALS:
        return _PLURALS[word]
    return f"{word[:-3]}y" if word.endswith("ies") else word.removesuffix("s")


def has_noun(text: Wording, word: str) -> bool:
    """Whether the text has the noun, in the singular or the plural."""
    single = _singular(word)
    if any(map(text.has, (single, f"{single}s", f"{single[:-1]}ies"))):
        return True
    return any(all(map(text.has, name)) for name in synonyms(single))


def not_new(wanted: Wording, offered: Wording) -> Iterator[str]:
    """Yields why it is not new, or is only a part or the box of it."""
    states = sorted(
        state for state in _states(offered, wanted) if state in _NOT_NEW or state.endswith(" only")
    )
    if states:
        yield f"is {', '.join(states)}"


def says_second_hand(text: Wording) -> bool:
    return any(
        second in _SECOND_HAND or first + second in _SECOND_HAND
        for first, second in pairwise(("", *text.tokens))
    )


def _states(offered: Wording, wanted: Wording) -> Iterator[str]:
    states = _states_of(offered, wanted)
    if says_second_hand(wanted):
        return (state for state in states if state not in {*_SECOND_HAND, "used"})
    return states


def _states_of(offered: Wording, wanted: Wording) -> Iterator[str]:
    yield from _OTHER_STATES & offered.words - wanted.words - {"style", "compatible"}
    if not wanted.has("compatible") and _is_compatible(offered.tokens):
        yield "compatible"
    for first, second in pairwise(("", *offered.tokens)):
        if first + second in _IN_TWO_WORDS:
            yield first + second
        if second == "style" and not wanted.has(second) and wanted.has(first):
            yield second  # of something that is wanted; elsewhere it is part of a name
        if second == "only" and first not in _WHOLE and not wanted.has(first):
            yield f"{first} only"


def _is_compatible(tokens: Sequence[str]) -> bool:
    """Whether it is compatible with something else; HE compatible describes the thing itself."""
    if not tokens:
        return False
    pairs = pairwise((*tokens, ""))
    return tokens[0] == "compatible" or any(
        first == "compatible" and second in ("with", "for") for first, second in pairs
    )


def other_variants(wanted: Wording, offered: Wording, missing: frozenset[str]) -> dict[str, str]:
    """Returns doubts: what contradicts the list."""
    packs = (("other_pack", text) for text in other_pack(wanted, offered))
    return dict([*_other_words(wanted, offered, missing), *packs])


def unnamed_variants(wanted: Wording, offered: Wording) -> list[str]:
    """Returns what the list does not say, and would if it meant this one.

    A list that gives the maker's number need not say more."""
    if any(is_code(word) and offered.has(word) for word in wanted.words):
        return []
    more = _VARIANTS.intersection(_more(wanted, offered))
    of_itself = offered.head if offered.head is not None else offered.words
    return sorted(
        word
        for word in more & of_itself
        if not _is_name(word, offered) and _follows_named(word, wanted, offered)
    )


def variants_of_number(words: Sequence[str], offered: Wording) -> Iterator[str]:
    """Yields words after a number, which always name another product: iPhone 15 Pro, RTX 4070
    Ti."""
    pairs = (pair for pair in pairwise(offered.tokens) if pair not in _NAMES)
    others = frozenset(words) - _EDITIONS
    found = sorted({b for a, b in pairs if b in others and any(map(str.isdecimal, a))})
    if found:
        yield f"is {', '.join(found)}"


def _follows_named(word: str, wanted: Wording, offered: Wording) -> bool:
    """Whether the word follows something that the row names: 15 in iPhone 15 Pro; not Torchiere
    Super Bright, nor an air purifier."""
    tokens = offered.tokens
    return any(
        second == word and wanted.has(first) and not (word == "air" and _is_thing(after))
        for first, second, after in zip(tokens, tokens[1:], (*tokens[2:], ""), strict=False)
    )


def _is_thing(word: str) -> bool:
    return kind_of(word) is Kind.THING


def _is_name(word: str, offered: Wording) -> bool:
    """Whether the word is part of a name, as in 20V MAX, where it comes after a size, or Dawn
    Ultra, after the brand."""
    brand = offered.tokens[0]
    pairs = [first for first, second in pairwise(offered.tokens) if second == word]
    return bool(pairs) and all(
        (first == brand and word in _OF_BRANDS)
        or unit_of(first) is not None
        or (first, word) in _NAMES
        or _is_line(first, word)
        for first in pairs
    )


def _is_line(before: str, word: str) -> bool:
    """Whether the pair is a line: Sony FE is a line of lenses, S23 FE a variant."""
    return word == "fe" and not any(map(str.isdecimal, before))


@lru_cache(maxsize=_CACHED)
def is_code(word: str) -> bool:
    """Whether the word is a maker's number: letters and digits."""
    has_letters = any(map(str.isalpha, word))
    return len(word) >= _SHORTEST_CODE and has_letters and any(map(str.isdecimal, word))


def begins_code(word: str, other: str) -> bool:
    """Whether a list leaves out the end of a maker's number: DCD996 is DCD996B, 1785 is 1785A,
    CPT160 is CPT160P1, 20115 is 20115.0000."""
    if not other.startswith(word) or len(other) - len(word) > _LONGEST_ENDING:
        return False
    rest = other[len(word) :]
    is_ending = rest[:1].isalpha() or set(rest) == {"0"}
    if not is_ending or rest in _VARIANTS - {"xl"}:
        return False
    # One more letter makes a short number another one: ZX3 is not ZX3B, T90 is T90SR.
    if is_code(word) or (_is_long_number(word) and (rest.isalpha() or len(rest) > 1)):
        return True
    is_whole = rest.isalpha() or len(word) > _SHORTEST_NUMBER
    return len(rest) > 1 and is_whole and _is_short_code(word)


def _is_short_code(word: str) -> bool:
    return len(word) >= _SHORTEST_NUMBER and word[0].isalpha() and any(map(str.isdecimal, word))


def _is_long_number(word: str) -> bool:
    return len(word) >= _SHORTEST_NUMBER and word.isdecimal()


def several_things(wanted: Wording, offered: Wording) -> bool:
    return bool(_SEVERAL_THINGS & offered.words - wanted.words)


def more_sizes(wanted: Wording, offered: Wording) -> int:
    """Counts the sizes that it has besides, in units in which the list names one."""
    return sum(
        len(offered.sizes[unit] - numbers)
        for unit, numbers in wanted.sizes.items()
        if unit in offered.sizes
    )


def _more(wanted: Wording, offered: Wording) -> list[str]:
    return [word for word in offered.words - offered.covered(wanted) if not wanted.has(word)]


def _other_words(
    wanted: Wording, offered: Wording, missing: frozenset[str]
) -> Iterator[tuple[str, str]]:
    more = _more(wanted, offered)
    without = (_VARIANTS - _OF_USERS).intersection(missing)
    if without:
        yield "without_variant", f"without {', '.join(sorted(without))}"
    single = ["single"] if "single" in offered.tokens else []
    if any(map(exclusive_group, missing)):
        yield from _exclusive(missing, _not_called(wanted, more) + single)
    codes = {_form_of_code(word): word for word in more if _is_letter_code(word)}
    for word in sorted(filter(_is_letter_code, missing)):
        other = codes.get(_form_of_code(word))
        if other and not _begins(word, more):
            kind = "other_letter" if _form_of_code(word) else "other_letters"
            yield kind, f"{other} instead of {word}"


def _not_called(wanted: Wording, words: Sequence[str]) -> list[str]:
    """Returns the words without those that the row says under another name: a loveseat is a sofa
    for two, scarlet red."""
    names = {name for each in phrases_in(tuple(wanted.tokens)).values() for name in each}
    called = {word for name in names for word in name}
    return [
        word
        for word in filter(exclusive_group, words)
        if word not in called
        and not any(is_color_of(word, other) or is_color_of(other, word) for other in wanted.words)
    ]


def _exclusive(missing: Iterable[str], more: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yields words of which a product has only one: twin or queen, gas or electric."""
    groups = {group: word for word in more if (group := exclusive_group(word))}
    for word in sorted(missing) if groups else ():
        group = exclusive_group(word)
        if other := groups.get(group):
            kind = "other_color" if group == COLOR else "exclusive"
            yield kind, f"{other} instead of {word}"


def _begins(word: str, others: Iterable[str]) -> bool:
    """Whether the word begins another: SD is short for SDXC."""
    return len(word) > 1 and any(
        other.startswith(word) and len(other) > _LONGEST_CODE and len(set(other)) > 1
        for other in others
    )


@lru_cache(maxsize=_CACHED)
def _is_letter_code(word: str) -> bool:
    """Whether the word is a short letter code, such as AA, EF or size B."""
    if unit_of(word) or is_remark(word):
        return False
    is_short = word.isalpha() and (len(word) <= _LONGEST_CODE or len(set(word)) == 1)
    return is_short and word not in _WORDS_OF_TWO


def _form_of_code(word: str) -> bool:
    """Whether the code repeats one letter, as AA and B do, or has two: only those of one form
    exclude each other."""
    return len(set(word)) == 1


def other_sizes(wanted: Wording, offered: Wording) -> Iterator[str]:
    for unit, numbers in wanted.sizes.items():
        others = offered.sizes.get(unit)
        if others and not any(has_size(offered.sizes, unit, number) for number in numbers):
            own, other = (min(each).normalize() for each in (numbers, others))
            yield f"{other:f} {unit} instead of {own:f} {unit}"


def other_fit(wanted: Wording, offered: Wording) -> Iterator[str]:
    """Yields why clothes are of another size, if the title gives one."""
    own, other = frozenset(wanted.worn.values()), frozenset(offered.worn.values())
    if own and other and own.isdisjoint(other):
        yield f"size {min(other)} instead of {min(own)}"


def other_pack(wanted: Wording, offered: Wording) -> Iterator[str]:
    """Yields why the pack differs.

    A number of pieces may be written as a count: 12 pack, 12 count."""
    own, other = wanted.pack or 1, offered.pack or 1
    if own == other:
        return
    pairs = wanted if other == _PAIR else offered if own == _PAIR else None
    if (pairs is not None and "pair" in pairs.tokens) or _names_any_pack(wanted):
        return
    if own > 1 and str(own) not in offered.tokens:
        yield f"{'one' if other == 1 else f'a pack of {other}'}, not a pack of {own}"
    elif other > 1 and str(other) not in wanted.tokens and not _names_several(wanted, offered):
        yield f"a pack of {other}"


def _names_several(wanted: Wording, offered: Wording) -> bool:
    """Whether it is wanted in the plural, without a number: bags, batteries."""
    plurals = (w for w in wanted.words if len(w) > 3 and w.endswith("s") and not w.endswith("ss"))
    return wanted.pack is None and any(has_noun(offered, word) for word in plurals)


def _names_any_pack(wanted: Wording) -> bool:
    """Whether a combo pack or a multipack is wanted, without a number."""
    return wanted.pack is None and not _SEVERAL_PACKED.isdisjoint(wanted.tokens)


def _has_or_alike(word: str, within: Wording) -> bool:
    return within.has(word) or _has_alike(word, within)


def _share(words: frozenset[str], within: Wording) -> float:
    if not words:
        return 1.0
    return sum(1 for word in words if _has_or_alike(word, within)) / len(words)


def _has_alike(word: str, within: Wording) -> bool:
    """Whether the word is there in the plural, or within a longer word."""
    return len(word) > _LONGEST_CODE + 1 and word.rstrip("s") in within.text
