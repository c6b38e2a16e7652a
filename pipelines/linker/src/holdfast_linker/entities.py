"""Entities as Wikibase's JSON has them, and the values of their claims.

Everything here is pure. PHP writes an empty map as a list, labels may be absent in every language,
and a claim may say that a value exists but is unknown: each of these is normal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Any

from holdfast_linker.dates import PartialDate, Precision

INSTANCE_OF = "P31"
SUBCLASS_OF = "P279"
_TIME = re.compile(r"([+-])(\d{1,16})-(\d\d)-(\d\d)T")
_JULIAN = "Q1985786"
_ENTITY_NUMBER = re.compile(r"[A-Z](\d{1,15})")


class Rank(IntEnum):
    DEPRECATED = 0
    NORMAL = 1
    PREFERRED = 2


class Kind(StrEnum):
    """The kind of a value, as far as comparing it is concerned."""

    TEXT = "text"
    IDENTIFIER = "identifier"
    URL = "url"
    ITEM = "item"
    DATE = "date"
    QUANTITY = "quantity"
    PLACE = "place"  # a coordinate
    UNKNOWN = "unknown"  # there is one, but it is unknown
    NONE = "none"  # it is known that there is none


@dataclass(frozen=True, slots=True)
class Value:
    kind: Kind
    text: str = ""  # as people read it; or the id of an item
    date: PartialDate | None = None
    point: tuple[float, float] | None = None  # latitude, longitude
    names: tuple[str, ...] = ()  # names of an item, if they were looked up


@dataclass(frozen=True, slots=True)
class Claim:
    rank: Rank
    value: Value


@dataclass(frozen=True, slots=True)
class Entity:
    id: str
    labels: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, Sequence[str]] = field(default_factory=dict)
    descriptions: Mapping[str, str] = field(default_factory=dict)
    claims: Mapping[str, Sequence[Claim]] = field(default_factory=dict)
    datatype: str | None = None  # of a property
    redirected_from: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Every label and alias once, in all languages."""
        more = (alias for aliases in self.aliases.values() for alias in aliases)
        return tuple(dict.fromkeys((*self.labels.values(), *more)))

    def label(self, language: str) -> str | None:
        return in_language(self.labels, language)

    def best(self, property_id: str) -> list[Value]:
        """Returns the values of the best rank there is; deprecated ones never count."""
        claims = [c for c in self.claims.get(property_id, ()) if c.rank is not Rank.DEPRECATED]
        if not claims:
            return []
        highest = max(claim.rank for claim in claims)
        return [claim.value for claim in claims if claim.rank is highest]

    def current(self, property_id: str) -> list[Value]:
        """Returns all values that are not deprecated: an old identifier still names the thing."""
        claims = self.claims.get(property_id, ())
        return [claim.value for claim in claims if claim.rank is not Rank.DEPRECATED]

    def items(self, property_id: str) -> list[str]:
        return [value.text for value in self.best(property_id) if value.kind is Kind.ITEM]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate as scoring compares it with an entry, wherever it came from."""

    id: str
    label: str
    names: tuple[str, ...]
    description: str = ""
    types: frozenset[str] | None = None  # with all classes above them; None: not known
    values: Mapping[str, Sequence[Value]] = field(default_factory=dict)


def in_language(texts: Mapping[str, str], language: str) -> str | None:
    """Returns the text in this language, else the one for all languages, English, or any."""
    for choice in (language, "mul", "en"):
        if texts.get(choice):
            return texts[choice]
    return next(iter(texts.values()), None)


def number_of(entity_id: str) -> int:
    """Returns the number in an id, for ordering: Q42 comes before Q100."""
    match = _ENTITY_NUMBER.fullmatch(entity_id)
    return int(match[1]) if match else 2**63


def parse_entities(reply: Mapping[str, Any], wanted: Iterable[str]) -> dict[str, Entity | None]:
    """Returns the entities of a wbgetentities reply by the requested ids; None if one does not
    exist.

    A redirected item comes under the id that was requested, or under its target's."""
    parsed: dict[str, Entity | None] = {}
    sources: dict[str, Entity] = {}
    for key, raw in as_map(reply.get("entities")).items():
        entity = parse_entity(raw)
        parsed[key] = entity
        if entity is not None and entity.redirected_from:
            sources[entity.redirected_from] = entity
    return {entity_id: sources.get(entity_id) or parsed.get(entity_id) for entity_id in wanted}


def parse_entity(raw: Mapping[str, Any]) -> Entity | None:
    """Parses an entity; returns None if it is missing: `missing` is an empty text in the old
    format."""
    if "missing" in raw and raw["missing"] is not False:
        return None
    redirect = as_map(raw.get("redirects"))
    return Entity(
        id=str(redirect.get("to") or raw.get("id", "")),
        labels=_texts(raw.get("labels")),
        aliases={
            language: tuple(str(alias["value"]) for alias in aliases)
            for language, aliases in as_map(raw.get("aliases")).items()
        },
        descriptions=_texts(raw.get("descriptions")),
        claims={
            property_id: tuple(map(parse_claim, claims))
            for property_id, claims in as_map(raw.get("claims")).items()
        },
        datatype=raw.get("datatype"),
        redirected_from=redirect.get("from"),
    )


def as_map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _texts(raw: Any) -> dict[str, str]:
    return {language: str(text["value"]) for language, text in as_map(raw).items()}


def parse_claim(raw: Mapping[str, Any]) -> Claim:
    rank = Rank[str(raw.get("rank", "normal")).upper()]
    return Claim(rank, _snak(as_map(raw.get("mainsnak"))))


def _snak(snak: Mapping[str, Any]) -> Value:
    kind = snak.get("snaktype")
    if kind == "novalue":
        return Value(Kind.NONE)
    data = as_map(snak.get("datavalue"))
    if kind != "value" or not data:
        return Value(Kind.UNKNOWN)
    return _data_value(str(data.get("type")), data.get("value"), str(snak.get("datatype", "")))


def _data_value(type_: str, raw: Any, datatype: str) -> Value:
    if type_ == "string":
        kinds = {"external-id": Kind.IDENTIFIER, "url": Kind.URL}
        return Value(kinds.get(datatype, Kind.TEXT), str(raw))
    value = as_map(raw)
    if type_ == "wikibase-entityid":
        letter = {"item": "Q", "property": "P"}.get(str(value.get("entity-type")), "")
        return Value(Kind.ITEM, str(value.get("id") or f"{letter}{value.get('numeric-id')}"))
    if type_ == "time":
        return _time(value)
    if type_ == "monolingualtext":
        return Value(Kind.TEXT, str(value.get("text", "")))
    if type_ == "quantity":
        return Value(Kind.QUANTITY, str(value.get("amount", "")).removeprefix("+"))
    if type_ == "globecoordinate":
        point = (float(value["latitude"]), float(value["longitude"]))
        return Value(Kind.PLACE, f"{point[0]}, {point[1]}", point=point)
    return Value(Kind.UNKNOWN)


def _time(value: Mapping[str, Any]) -> Value:
    """Parses a time. Zero months and days are normal: the precision says what is known."""
    match = _TIME.match(str(value.get("time", "")))
    precision = int(value.get("precision", 0))
    if not match or not Precision.CENTURY <= precision <= 14 or not int(match[2]):
        return Value(Kind.UNKNOWN)
    level = Precision(min(precision, Precision.DAY))
    month, day = int(match[3]), int(match[4])
    if level >= Precision.MONTH and not month:
        level = Precision.YEAR
    if level is Precision.DAY and not day:
        level = Precision.MONTH
    date = PartialDate(
        year=int(match[2]) * (-1 if match[1] == "-" else 1),
        month=month if level >= Precision.MONTH else 0,
        day=day if level is Precision.DAY else 0,
        precision=level,
        julian=str(value.get("calendarmodel", "")).endswith(_JULIAN),
    )
    return Value(Kind.DATE, str(date), date=date)


def candidate_of(
    entity: Entity, language: str, closure: Mapping[str, frozenset[str]] | None = None
) -> Candidate:
    """Returns the entity as scoring sees it. `closure` has all classes above each class."""
    direct = entity.items(INSTANCE_OF)
    above = closure or {}
    types = frozenset(direct).union(*(above.get(class_id, frozenset()) for class_id in direct))
    return Candidate(
        id=entity.id,
        label=entity.label(language) or entity.id,
        names=entity.names,
        description=in_language(entity.descriptions, language) or "",
        types=types,
        values={
            property_id: entity.current(property_id)
            if _is_identifier(claims)
            else entity.best(property_id)
            for property_id, claims in entity.claims.items()
        },
    )


def _is_identifier(claims: Sequence[Claim]) -> bool:
    return any(claim.value.kind is Kind.IDENTIFIER for claim in claims)
