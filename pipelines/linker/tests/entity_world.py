"""A small Wikidata: some well-known entities, and a few thousand that a seed makes.

Generated people have what real ones have: namesakes, fathers and sons, names in several scripts,
dates known to the day or only to the year, deprecated and preferred claims, values that exist but
are unknown, identifiers for some, nothing but a name for others.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

Json = dict[str, Any]

HUMAN, CITY, COMPANY, FILM = "Q5", "Q515", "Q4830453", "Q11424"
BORN, DIED, FOUNDED, RELEASED = "P569", "P570", "P571", "P577"
OCCUPATION, COUNTRY, CITIZENSHIP, PLACE = "P106", "P17", "P27", "P625"
VIAF, ISNI, IMDB = "P214", "P213", "P345"
FIRST_GENERATED = 90_000_000

CLASSES = {
    "Q5": ("human", ["Q215627"]),
    "Q215627": ("person", ["Q35120"]),
    "Q515": ("city", ["Q486972"]),
    "Q1549591": ("big city", ["Q515"]),
    "Q486972": ("human settlement", ["Q35120"]),
    "Q4830453": ("business", ["Q43229"]),
    "Q43229": ("organization", ["Q35120"]),
    "Q11424": ("film", ["Q35120"]),
    "Q35120": ("entity", ["Q35120"]),  # in a circle, as real ones are
    "Q4167410": ("Wikimedia disambiguation page", []),
}
OCCUPATIONS = {
    "Q36180": "writer",
    "Q1028181": "painter",
    "Q82955": "politician",
    "Q33999": "actor",
    "Q36834": "composer",
    "Q901": "scientist",
    "Q937857": "association football player",
    "Q1930187": "journalist",
    "Q40348": "lawyer",
    "Q81096": "engineer",
}
COUNTRIES = {
    "Q183": "Germany",
    "Q30": "United States",
    "Q142": "France",
    "Q145": "United Kingdom",
    "Q159": "Russia",
    "Q17": "Japan",
    "Q79": "Egypt",
    "Q41": "Greece",
}
PROPERTIES = {
    "P31": ("instance of", "wikibase-item"),
    "P279": ("subclass of", "wikibase-item"),
    BORN: ("date of birth", "time"),
    DIED: ("date of death", "time"),
    FOUNDED: ("inception", "time"),
    RELEASED: ("publication date", "time"),
    OCCUPATION: ("occupation", "wikibase-item"),
    COUNTRY: ("country", "wikibase-item"),
    CITIZENSHIP: ("country of citizenship", "wikibase-item"),
    PLACE: ("coordinate location", "globe-coordinate"),
    VIAF: ("VIAF ID", "external-id"),
    ISNI: ("ISNI", "external-id"),
    IMDB: ("IMDb ID", "external-id"),
}

_NAMES = json.loads((Path(__file__).parent / "world_names.json").read_text())
_LATIN_GIVEN: list[str] = _NAMES["given"]
_LATIN_FAMILY: list[str] = _NAMES["family"]
#: For each language: Latin as Wikidata has it, the native form, another usual Latin spelling.
_SCRIPTS: dict[str, dict[str, list[list[str]]]] = _NAMES["scripts"]
WELL_KNOWN: list[Json] = _NAMES["well_known"]
_CITY_PARTS = (["North", "New", "Bad", "Saint", "Upper", "Port"], ["field", "burg", "ville", "ton"])
_COMPANY_KINDS = ["Works", "Motors", "Press", "Brothers", "Systems", "Mills"]
_FILM_WORDS = [
    "Night",
    "River",
    "Winter",
    "Silent",
    "Garden",
    "Last",
    "Stranger",
    "Summer",
    "Letter",
]


@dataclass
class Person:
    """What the labelled set needs to know of a generated person."""

    id: str
    latin: str
    native: str = ""
    language: str = "en"
    spelling: str = ""  # another usual one, which is no alias
    born: date | None = None
    precision: int = 11
    died: date | None = None
    occupation: str = ""
    country: str = ""
    viaf: str = ""
    given: str = ""
    family: str = ""
    latin_known: bool = True  # whether the item has a name in Latin letters


@dataclass
class EntityWorld:
    entities: dict[str, Json] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    people: list[Person] = field(default_factory=list)
    things: list[tuple[str, str, str, str]] = field(default_factory=list)  # id, name, type, year

    def get(self, entity_id: str) -> Json | None:
        return self.entities.get(self.redirects.get(entity_id, entity_id))


def make_world(seed: int, people: int = 2500, things: int = 500) -> EntityWorld:
    rng = random.Random(seed)
    world = EntityWorld()
    for entity in _fixed():
        world.entities[entity["id"]] = entity
    numbers = iter(range(FIRST_GENERATED, FIRST_GENERATED + 10_000_000, 7))
    while len(world.people) < people:
        for person in _family(rng, numbers):
            world.people.append(person)
            world.entities[person.id] = _person_entity(person, rng)
    for _ in range(things):
        _add_thing(world, f"Q{next(numbers)}", rng)
    for person in rng.sample(world.people, 20):
        world.redirects[f"Q{next(numbers)}"] = person.id
    return world


def _fixed() -> Iterator[Json]:
    for pid, (label, datatype) in PROPERTIES.items():
        yield {**_entity(pid, {"en": label}), "type": "property", "datatype": datatype}
    for qid, (label, above) in CLASSES.items():
        yield _entity(qid, {"en": label}, claims=_claims([item_claim("P279", c) for c in above]))
    for qid, label in {**OCCUPATIONS, **COUNTRIES}.items():
        yield _entity(qid, {"en": label})
    for known in WELL_KNOWN:
        claims = [item_claim("P31", HUMAN), item_claim(OCCUPATION, known["occupation"])]
        dates = ((BORN, known["born"]), (DIED, known["died"]))
        claims += [_text_time(pid, text) for pid, text in dates if text]
        labels = {"en": known["label"], **known["scripts"]}
        aliases = {"en": known["aliases"]}
        yield _entity(known["id"], labels, aliases, {"en": "well known"}, _claims(claims))


def _text_time(property_id: str, text: str) -> Json:
    parts = [*map(int, text.split("-")), 0, 0][:3]
    precision = 11 if parts[2] else 10 if parts[1] else 9
    return time_claim(property_id, f"+{parts[0]:04}-{parts[1]:02}-{parts[2]:02}", precision)


def _family(rng: random.Random, numbers: Iterator[int]) -> Iterator[Person]:
    """One person, and often somebody of the same name."""
    first = _person(rng, f"Q{next(numbers)}")
    yield first
    while rng.random() < 0.3:
        namesake = _person(rng, f"Q{next(numbers)}")
        for name in ("latin", "native", "language", "spelling", "given", "family"):
            setattr(namesake, name, getattr(first, name))
        yield namesake


def _person(rng: random.Random, qid: str) -> Person:
    person = Person(qid, "")
    if rng.random() < 0.3:
        language = rng.choice(list(_SCRIPTS))
        given, family = (rng.choice(_SCRIPTS[language][part]) for part in ("given", "family"))
        person.language = language
        person.native = f"{given[1]} {family[1]}"
        if language == "ja":
            person.native = family[1] + given[1]
        person.spelling = f"{given[2]} {family[2]}"
        person.given, person.family = given[0], family[0]
    else:
        person.given = rng.choice(_LATIN_GIVEN)
        if rng.random() < 0.4:
            person.given += " " + rng.choice(_LATIN_GIVEN)
        person.family = rng.choice(_LATIN_FAMILY)
        if rng.random() < 0.15:
            person.family += "-" + rng.choice(_LATIN_FAMILY)
    person.latin = f"{person.given} {person.family}"
    person.born = date(1820, 1, 1) + timedelta(days=rng.randrange(65_000))
    person.precision = rng.choice([11, 11, 11, 9, 9, 0])
    if rng.random() < 0.4 and person.born.year < 1940:
        person.died = person.born + timedelta(days=rng.randrange(9_000, 30_000))
    person.occupation = rng.choice(list(OCCUPATIONS))
    person.country = rng.choice(list(COUNTRIES))
    if rng.random() < 0.3:
        person.viaf = str(rng.randrange(10**8, 10**9))
    return person


def _person_entity(person: Person, rng: random.Random) -> Json:
    labels = {"en": person.latin}
    if person.native and rng.random() < 0.9:
        labels[person.language] = person.native
    if person.native and rng.random() < 0.1:
        labels = {person.language: person.native}
        person.latin_known = False
    claims = [item_claim("P31", HUMAN)] if rng.random() > 0.02 else []
    claims += [item_claim(OCCUPATION, person.occupation), item_claim(CITIZENSHIP, person.country)]
    claims += _birth_claims(person, rng)
    if person.died:
        claims.append(time_claim(DIED, f"+{person.died.isoformat()}", 11))
    elif rng.random() < 0.1:
        claims.append(unknown_claim(DIED, "time", rng.choice(["somevalue", "novalue"])))
    if person.viaf:
        claims.append(text_claim(VIAF, person.viaf, "external-id"))
    description = OCCUPATIONS[person.occupation] + " from " + COUNTRIES[person.country]
    return _entity(person.id, labels, {}, {"en": description}, _claims(claims))


def _birth_claims(person: Person, rng: random.Random) -> list[Json]:
    assert person.born is not None
    if person.precision == 0:
        return [unknown_claim(BORN, "time", "somevalue")] if rng.random() < 0.3 else []
    text = f"+{person.born.isoformat()}" if person.precision == 11 else f"+{person.born.year}-00-00"
    claims = [time_claim(BORN, text, person.precision)]
    if rng.random() < 0.05:  # an error that was marked as one
        wrong = person.born.replace(day=1) - timedelta(days=4000)
        claims.insert(0, time_claim(BORN, f"+{wrong.isoformat()}", 11, rank="deprecated"))
    if rng.random() < 0.05:
        claims[-1]["rank"] = "preferred"
        other = person.born.replace(day=1) + timedelta(days=800)
        claims.insert(0, time_claim(BORN, f"+{other.isoformat()}", 11))
    return claims


def _add_thing(world: EntityWorld, qid: str, rng: random.Random) -> None:
    kind = rng.choice([CITY, COMPANY, FILM])
    year = rng.randrange(1850, 2020)
    if kind == CITY:
        first, last = _CITY_PARTS
        stem = rng.choice(_LATIN_FAMILY).replace("'", "")
        name = f"{rng.choice(first)} {stem}{rng.choice(last)}"
        point = (round(rng.uniform(-60, 60), 4), round(rng.uniform(-170, 170), 4))
        claims = [place_claim(PLACE, *point), time_claim(FOUNDED, f"+{year}-00-00", 9)]
    elif kind == COMPANY:
        name = f"{rng.choice(_LATIN_FAMILY)} {rng.choice(_COMPANY_KINDS)}"
        claims = [time_claim(FOUNDED, f"+{year}-00-00", 9)]
    else:
        name = " ".join(rng.sample(_FILM_WORDS, 2))
        claims = [time_claim(RELEASED, f"+{year}-05-01", 11)]
    instance = "Q1549591" if kind == CITY and rng.random() < 0.3 else kind
    entity = _entity(qid, {"en": name}, claims=_claims([item_claim("P31", instance), *claims]))
    world.entities[qid] = entity
    world.things.append((qid, name, kind, str(year)))


def _entity(
    entity_id: str,
    labels: dict[str, str],
    aliases: dict[str, list[str]] | None = None,
    descriptions: dict[str, str] | None = None,
    claims: Json | None = None,
) -> Json:
    def texts(values: dict[str, str]) -> Any:
        return {code: {"language": code, "value": text} for code, text in values.items()} or []

    named = {
        code: [{"language": code, "value": alias} for alias in each]
        for code, each in (aliases or {}).items()
        if each
    }
    return {
        "type": "item",
        "id": entity_id,
        "labels": texts(labels),
        "aliases": named or [],  # PHP's empty map
        "descriptions": texts(descriptions or {}),
        "claims": claims or [],
    }


def _claims(claims: list[Json]) -> Json:
    grouped: Json = {}
    for claim in claims:
        grouped.setdefault(claim["mainsnak"]["property"], []).append(claim)
    return grouped


def _claim(property_id: str, datatype: str, datavalue: Json, rank: str = "normal") -> Json:
    snak = {
        "snaktype": "value",
        "property": property_id,
        "datavalue": datavalue,
        "datatype": datatype,
    }
    return {"mainsnak": snak, "type": "statement", "rank": rank}


def item_claim(property_id: str, item: str) -> Json:
    value = {"entity-type": "item", "numeric-id": int(item[1:]), "id": item}
    return _claim(property_id, "wikibase-item", {"value": value, "type": "wikibase-entityid"})


def time_claim(
    property_id: str, day: str, precision: int, rank: str = "normal", calendar: str = "Q1985727"
) -> Json:
    value = {
        "time": f"{day}T00:00:00Z",
        "timezone": 0,
        "before": 0,
        "after": 0,
        "precision": precision,
        "calendarmodel": f"http://www.wikidata.org/entity/{calendar}",
    }
    return _claim(property_id, "time", {"value": value, "type": "time"}, rank)


def text_claim(property_id: str, text: str, datatype: str = "string") -> Json:
    return _claim(property_id, datatype, {"value": text, "type": "string"})


def place_claim(property_id: str, latitude: float, longitude: float) -> Json:
    value = {"latitude": latitude, "longitude": longitude, "precision": 0.0001, "globe": "Q2"}
    return _claim(property_id, "globe-coordinate", {"value": value, "type": "globecoordinate"})


def unknown_claim(property_id: str, datatype: str, snaktype: str) -> Json:
    snak = {"snaktype": snaktype, "property": property_id, "datatype": datatype}
    return {"mainsnak": snak, "type": "statement", "rank": "normal"}
