"""Guesses which column of a table says what, by the columns' names; never by substrings."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast_linker.entries import ColumnMapping, is_property_id

_NAME = ("name", "full name", "label", "title")
_ID = ("id", "key", "identifier", "record id")
_ALIASES = ("alias", "aliases", "also known as", "other names")
_TYPE = ("type", "class", "instance of")
_DATES = {
    "P569": ("born", "birth", "birth date", "date of birth", "birthdate", "birth year"),
    "P570": ("died", "death", "death date", "date of death", "deathdate", "death year"),
    "P571": ("founded", "inception", "established", "created"),
    "P577": ("published", "released", "publication date", "release date"),
}
_IDENTIFIERS = {
    "P214": ("viaf", "viaf id"),
    "P213": ("isni",),
    "P227": ("gnd", "gnd id"),
    "P244": ("lccn", "loc id"),
    "P345": ("imdb", "imdb id"),
    "P496": ("orcid", "orcid id"),
    "P1566": ("geonames", "geonames id"),
    "P6782": ("ror", "ror id"),
}
_PROPERTIES = {
    "P106": ("occupation", "profession"),
    "P27": ("citizenship", "nationality"),
    "P17": ("country",),
    "P625": ("coordinates", "coordinate location"),
}


def guess_mapping(columns: Sequence[str]) -> ColumnMapping | None:
    """Guesses the mapping; returns None if no column looks like one with names."""
    by_word: dict[str, str] = {}
    for column in columns:
        spaced = column.replace("_", " ").replace("-", " ")
        by_word.setdefault(" ".join(spaced.split()).casefold(), column)
    dates, identifiers = _by_words(_DATES, by_word), _by_words(_IDENTIFIERS, by_word)
    properties = _by_words(_PROPERTIES, by_word)
    for column in columns:
        property_id = column.rsplit(maxsplit=1)[-1].strip("()[]") if column.strip() else ""
        if is_property_id(property_id):
            _kind_of(property_id, dates, identifiers, properties)[column] = property_id
    name = _first(_NAME, by_word)
    if name is None and not identifiers:
        return None
    return ColumnMapping(
        name=name,
        id=_first(_ID, by_word),
        aliases=tuple(by_word[word] for word in _ALIASES if word in by_word),
        type=_first(_TYPE, by_word),
        dates=dates,
        identifiers=identifiers,
        properties=properties,
    )


def _kind_of(
    property_id: str,
    dates: dict[str, str],
    identifiers: dict[str, str],
    properties: dict[str, str],
) -> dict[str, str]:
    if property_id in _DATES:
        return dates
    return identifiers if property_id in _IDENTIFIERS else properties


def _first(words: Sequence[str], by_word: dict[str, str]) -> str | None:
    return next((by_word[word] for word in words if word in by_word), None)


def _by_words(known: dict[str, tuple[str, ...]], by_word: dict[str, str]) -> dict[str, str]:
    return {
        by_word[word]: property_id
        for property_id, words in known.items()
        for word in words
        if word in by_word
    }


def mapping_sentences(mapping: ColumnMapping) -> list[str]:
    """Describes a mapping, for people."""
    lines = [
        f"{role}: {column}"
        for role, column in (("name", mapping.name), ("id", mapping.id), ("type", mapping.type))
        if column
    ]
    if mapping.all_of_type:
        lines.append(f"all of type: {mapping.all_of_type}")
    lines += [f"other name: {column}" for column in mapping.aliases]
    lines += [f"date {pid}: {column}" for column, pid in mapping.dates.items()]
    lines += [f"identifier {pid}: {column}" for column, pid in mapping.identifiers.items()]
    lines += [f"property {pid}: {column}" for column, pid in mapping.properties.items()]
    return lines
