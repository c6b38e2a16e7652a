"""Labelled entries: rows as datasets have them, and the item that each of them really is.

`python -m bench.quality linker` measures the linking on them.
"""

from __future__ import annotations

import json
import random
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path

from bench.quality.linker.measuring import Report, measure, read_labelled
from holdfast.http import HttpOptions
from holdfast_linker.entries import ColumnMapping
from holdfast_linker.lookups import direct_lookups
from holdfast_linker.scoring import Thresholds
from holdfast_linker.wikidata import Api
from pipelines.linker.tests.entity_world import (
    BORN,
    CITIZENSHIP,
    COUNTRIES,
    DIED,
    FOUNDED,
    HUMAN,
    OCCUPATION,
    OCCUPATIONS,
    RELEASED,
    VIAF,
    EntityWorld,
    Json,
    Person,
    make_world,
)
from pipelines.linker.tests.wikidata_server import WikidataServer
from tests.http_client import http_client

MAPPING = ColumnMapping(
    name="name",
    aliases=("also",),
    type="type",
    dates={"born": BORN, "died": DIED, "founded": FOUNDED, "released": RELEASED},
    identifiers={"viaf": VIAF},
    properties={"occupation": OCCUPATION, "country": CITIZENSHIP},
)
HAND_MADE = Path(__file__).parent / "hand_made.jsonl"
AGENT = "holdfast-tests/1 (tests@holdfast.invalid) httpx2/2"
_FORMATS: list[Callable[[date], str]] = [
    date.isoformat,
    lambda day: f"{day.day}.{day.month}.{day.year}",
    lambda day: f"{day:%B} {day.day}, {day.year}",
    lambda day: f"{day.day} {day:%b} {day.year}",
    lambda day: f"{day:%Y%m%d}",
]
_VOWELS = "aeiouy"


class Maker:
    """Makes rows of one world; each case is a method that gives a row and its answer."""

    def __init__(self, world: EntityWorld, rng: random.Random) -> None:
        self._world = world
        self._rng = rng
        self._namesakes: dict[str, list[Person]] = defaultdict(list)
        for person in world.people:
            self._namesakes[person.latin].append(person)
        people = [p for p in world.people if p.latin_known]
        self._dated = [p for p in people if p.precision]
        self._alone = [p for p in people if len(self._namesakes[p.latin]) == 1]
        self._shared = [p for p in self._dated if len(self._namesakes[p.latin]) > 1]
        self._native = [p for p in world.people if p.native and p.precision]
        self._marked = [p for p in self._dated if not p.latin.isascii()]
        self._identified = [p for p in people if p.viaf]

    def rows(self, count: int) -> Iterator[Json]:
        cases = [name for name in dir(self) if name.startswith("case_")]
        for number in range(count):
            case = cases[number % len(cases)]
            row, expected = getattr(self, case)()
            filled = {column: value for column, value in row.items() if value}
            yield {"row": filled, "expected": expected, "case": case.removeprefix("case_")}

    def _date(self, person: Person) -> str:
        """As precise as the world knows it, written in some way."""
        assert person.born is not None
        if person.precision == 9:
            return str(person.born.year)
        return self._rng.choice(_FORMATS)(person.born)

    def _row(self, person: Person, name: str, born: str) -> Json:
        rng = self._rng
        row: Json = {"name": name, "born": born, "type": HUMAN if rng.random() < 0.7 else ""}
        if rng.random() < 0.5:
            row["occupation"] = rng.choice([person.occupation, OCCUPATIONS[person.occupation]])
        if rng.random() < 0.3:
            row["country"] = rng.choice([person.country, COUNTRIES[person.country]])
        if person.died and rng.random() < 0.5:
            row["died"] = person.died.isoformat()
        return row

    def case_plain(self) -> tuple[Json, str | None]:
        person = self._rng.choice(self._dated)
        return self._row(person, person.latin, self._date(person)), person.id

    def case_homonym(self) -> tuple[Json, str | None]:
        person = self._rng.choice(self._shared)
        return self._row(person, person.latin, self._date(person)), person.id

    def case_name_only(self) -> tuple[Json, str | None]:
        person = self._rng.choice(self._alone)
        return {"name": person.latin}, person.id

    def case_year_only(self) -> tuple[Json, str | None]:
        person = self._rng.choice(self._dated)
        assert person.born is not None
        year = str(person.born.year)
        return self._row(person, person.latin, self._rng.choice([year, f"c. {year}"])), person.id

    def case_native_script(self) -> tuple[Json, str | None]:
        person = self._rng.choice(self._native)
        return self._row(person, person.native, self._date(person)), person.id

    def case_other_spelling(self) -> tuple[Json, str | None]:
        """One part of the name in another transliteration."""
        person = self._rng.choice([p for p in self._dated if p.native])
        given, family = person.spelling.split(" ", 1)
        pair = self._rng.choice([f"{given} {person.family}", f"{person.given} {family}"])
        return self._row(person, pair, self._date(person)), person.id

    def case_swapped(self) -> tuple[Json, str | None]:
        person = self._rng.choice(self._dated)
        form = self._rng.choice(["{family}, {given}", "{family} {given}", "{FAMILY} {given}"])
        name = form.format(family=person.family, FAMILY=person.family.upper(), given=person.given)
        return self._row(person, name, self._date(person)), person.id

    def case_typo(self) -> tuple[Json, str | None]:
        person = self._rng.choice(self._dated)
        return self._row(person, self._typo(person.latin), self._date(person)), person.id

    def case_no_marks(self) -> tuple[Json, str | None]:
        person = self._rng.choice(self._marked)
        bare = unicodedata.normalize("NFD", person.latin)
        name = "".join(c for c in bare if not unicodedata.combining(c))
        return self._row(person, name, self._date(person)), person.id

    def case_strange_characters(self) -> tuple[Json, str | None]:
        person = self._rng.choice(self._dated)
        name = unicodedata.normalize("NFD", person.latin).replace(" ", "\u00a0")
        return self._row(person, f"\u200f{name}\u202c\x00 ", self._date(person)), person.id

    def case_near_date(self) -> tuple[Json, str | None]:
        person = self._rng.choice([p for p in self._dated if p.precision == 11])
        assert person.born is not None
        shift = timedelta(days=self._rng.choice([-2, -1, 1, 2]))
        near = self._rng.choice([person.born + shift, person.born.replace(month=1, day=1)])
        return self._row(person, person.latin, near.isoformat()), person.id

    def case_identifier(self) -> tuple[Json, str | None]:
        person = self._rng.choice(self._identified)
        initial = f"{person.given[0]}. {person.family}"
        name = self._rng.choice([person.latin, initial])
        viaf = self._rng.choice([person.viaf, f"https://viaf.org/viaf/{person.viaf}"])
        return {"name": name, "viaf": viaf, "type": HUMAN}, person.id

    def case_wrong_identifier(self) -> tuple[Json, str | None]:
        """Somebody else's identifier, by a slip of one row."""
        person, other = self._rng.choice(self._dated), self._rng.choice(self._identified)
        row = self._row(person, person.latin, self._date(person))
        if other.id == person.id or other.latin == person.latin:
            return row, person.id
        return {**row, "viaf": other.viaf}, person.id

    def case_thing(self) -> tuple[Json, str | None]:
        qid, name, kind, year = self._rng.choice(self._world.things)
        column = "released" if kind == "Q11424" else "founded"
        same = [t for t in self._world.things if t[1] == name and t[3] == year and t[2] == kind]
        answer = qid if len(same) == 1 else min((t[0] for t in same), key=lambda q: int(q[1:]))
        return {"name": name, "type": kind, column: year}, answer

    def case_decoy_other_date(self) -> tuple[Json, str | None]:
        """A namesake of somebody known, born some years apart."""
        person = self._rng.choice(self._dated)
        years = {p.born.year for p in self._namesakes[person.latin] if p.born}
        year = self._rng.choice([y for y in range(1820, 2000) if y not in years])
        day = date(year, self._rng.randrange(1, 13), self._rng.randrange(1, 29))
        text = self._rng.choice([day.isoformat(), str(year)])
        return {**self._row(person, person.latin, text), "died": ""}, None

    def case_decoy_undated(self) -> tuple[Json, str | None]:
        """A namesake of whom only occupation and country are known, which happen to fit."""
        person = self._rng.choice(self._world.people)
        row = {"name": person.latin, "type": HUMAN, "occupation": person.occupation}
        return {**row, "country": person.country if self._rng.random() < 0.5 else ""}, None

    def case_decoy_similar_name(self) -> tuple[Json, str | None]:
        """Another name by a letter or two, born in the same year."""
        person = self._rng.choice(self._dated)
        assert person.born is not None
        name = self._other_name(person)
        if name in self._namesakes:
            return {"name": f"{name} Unheardof"}, None
        return {"name": name, "born": str(person.born.year), "type": HUMAN}, None

    def case_decoy_sibling(self) -> tuple[Json, str | None]:
        """A twin whose given name differs by its ending."""
        person = self._rng.choice([p for p in self._dated if p.precision == 11])
        assert person.born is not None
        ending = "o" if person.given.endswith("a") else "a"
        name = f"{person.given.rstrip('aeo')}{ending} {person.family}"
        if name in self._namesakes:
            return {"name": f"{name} Unheardof"}, None
        return {"name": name, "born": person.born.isoformat(), "type": HUMAN}, None

    def case_decoy_other_occupation(self) -> tuple[Json, str | None]:
        """A namesake born in the same year who did something else."""
        person = self._rng.choice(self._dated)
        assert person.born is not None
        theirs = {p.occupation for p in self._namesakes[person.latin]}
        other = self._rng.choice([each for each in OCCUPATIONS if each not in theirs])
        born = str(person.born.year)
        return {"name": person.latin, "born": born, "occupation": other, "type": HUMAN}, None

    def case_decoy_wrong_type(self) -> tuple[Json, str | None]:
        _, name, kind, year = self._rng.choice(self._world.things)
        other = self._rng.choice([t for t in ("Q5", "Q515", "Q4830453", "Q11424") if t != kind])
        if any(t[1] == name and t[2] == other for t in self._world.things):
            return {"name": f"{name} Unheardof"}, None
        return {"name": name, "type": other, "founded": year}, None

    def case_decoy_nobody(self) -> tuple[Json, str | None]:
        return {"name": f"{self._typo('Xaverine Quillfeather')} {self._rng.randrange(99)}"}, None

    def _typo(self, name: str) -> str:
        at = self._rng.randrange(1, len(name) - 1)
        kind = self._rng.choice("xdr")
        if kind == "x":
            return name[:at] + name[at + 1] + name[at] + name[at + 2 :]
        if kind == "d":
            return name[:at] + name[at] + name[at:]
        return name[:at] + name[at + 1 :]

    def _other_name(self, person: Person) -> str:
        """Somebody else's family name: another vowel, another ending."""
        places = [i for i, c in enumerate(person.family[1:], 1) if c in _VOWELS]
        if not places:
            return f"{person.given} {person.family}s"
        at = self._rng.choice(places)
        vowel = self._rng.choice([v for v in _VOWELS if v != person.family[at]])
        return f"{person.given} {person.family[:at]}{vowel}{person.family[at + 1 :]}"


def make_labelled(world: EntityWorld, seed: int, count: int = 800) -> list[str]:
    """The lines of a labelled set: made by a seed, then those made by hand."""
    made = Maker(world, random.Random(f"labelled {seed}")).rows(count)
    lines = [json.dumps(row, ensure_ascii=False) for row in made]
    return lines + HAND_MADE.read_text().splitlines()


async def measure_seed(seed: int, count: int = 800) -> tuple[Report, Counter[str]]:
    """The report, and the calls that it took by action."""
    world = make_world(seed)
    labelled = read_labelled(make_labelled(world, seed, count), MAPPING)
    options = HttpOptions(user_agent=AGENT, allow_private_addresses=True)
    async with WikidataServer(world) as server, http_client(options) as client:
        lookups = direct_lookups(client, Api(url=server.url))
        report = await measure(labelled, lookups, Thresholds())
        return report, Counter(params["action"] for params in server.log)
