"""A small Wikidata for the demo, with namesakes, and a list of people to match with it: as much of
the Action API as linker needs, throttled now and then."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from holdfast.demo.goods import fate
from holdfast.demo.part import NOT_FOUND, Ask, DemoPart, Reply, Sample
from holdfast.model import Json
from holdfast_linker.guessing import guess_mapping
from holdfast_linker.names import fold
from holdfast_linker.options import mapping_text
from holdfast_linker.projects import (
    ProjectRules,
    add_dataset,
    add_project,
    link_dataset,
)

_PROJECT = "People of the harbour archive"
_GIVEN = (
    "Ada", "Bruno", "Clara", "David", "Elsa", "Felix", "Greta", "Hugo", "Ida", "Jonas", "Klara",
    "Léon", "Maria", "Nils", "Olga", "Paul", "Rosa", "Søren", "Tove", "Viktor",
)  # fmt: skip
_FAMILY = (
    "Almqvist", "Brandt", "Castell", "Dubois", "Ekström", "Fjeld", "Grant", "Holm", "Ito", "Jansen",
    "Kowalski", "Lindgren", "Moreau", "Novák", "Okafor", "Petersen", "Quist", "Rossi", "Svensson",
)  # fmt: skip
_OCCUPATIONS = {"Q36180": "writer", "Q1028181": "painter", "Q45199": "sailor", "Q40348": "lawyer"}
_FAMOUS = (
    ("Q42", "Douglas Adams", 1952),
    ("Q7186", "Marie Curie", 1867),
    ("Q692", "William Shakespeare", 1564),
)
_FIRST = 90_000
_PEOPLE = 240
_ENTRIES = 90
_HITS = 50


@cache
def people() -> dict[str, tuple[str, int, str]]:
    """Returns name, year of birth and occupation by id.

    Every fifth person has the name of the one before."""
    known = {entity_id: (name, year, "Q36180") for entity_id, name, year in _FAMOUS}
    for number in range(_PEOPLE):
        who = number - 1 if number % 5 == 4 else number
        given = _GIVEN[fate(f"given {who}", len(_GIVEN))]
        family = _FAMILY[fate(f"family {who}", len(_FAMILY))]
        year = 1820 + fate(f"born {number}", 140)
        occupation = sorted(_OCCUPATIONS)[fate(f"occupation {number}", len(_OCCUPATIONS))]
        known[f"Q{_FIRST + number}"] = (f"{given} {family}", year, occupation)
    return known


def _entity(entity_id: str) -> Json:
    if entity_id == "Q5":
        return _item(entity_id, "human", "", {})
    if entity_id in _OCCUPATIONS:
        return _item(entity_id, _OCCUPATIONS[entity_id], "", {})
    if entity_id not in people():
        return {"id": entity_id, "missing": ""}
    name, year, occupation = people()[entity_id]
    born = {"time": f"+{year:04}-00-00T00:00:00Z", "precision": 9, "calendarmodel": ""}
    claims = {
        "P31": _claim("wikibase-item", "wikibase-entityid", {"entity-type": "item", "id": "Q5"}),
        "P569": _claim("time", "time", born),
        "P106": _claim(
            "wikibase-item", "wikibase-entityid", {"entity-type": "item", "id": occupation}
        ),
    }
    return _item(entity_id, name, f"{_OCCUPATIONS[occupation]}, born {year}", claims)


def _item(entity_id: str, label: str, description: str, claims: Json) -> Json:
    def texts(text: str) -> Json:
        return {"en": {"language": "en", "value": text}} if text else {}

    return {
        "type": "item",
        "id": entity_id,
        "labels": texts(label),
        "aliases": {},
        "descriptions": texts(description),
        "claims": claims,
    }


def _claim(datatype: str, kind: str, value: Json) -> list[Json]:
    snak = {"snaktype": "value", "datatype": datatype}
    return [{"rank": "normal", "mainsnak": {**snak, "datavalue": {"type": kind, "value": value}}}]


def answer(ask: Ask) -> Reply:
    """Answers w/api.php as Wikidata does."""
    if ask.path != "w/api.php":
        return NOT_FOUND
    if fate(f"busy {int(ask.uptime_seconds * 50)}", 200) == 0:
        page = "<!DOCTYPE html><title>Wikimedia Error</title><p>Too many requests.</p>"
        return Reply(page, 429, "text/html", {"Retry-After": "2"})
    return Reply(_body(ask.query), delay_seconds=0.05)


def _body(query: Mapping[str, str]) -> Json:
    action = query.get("action")
    if action == "wbgetentities":
        ids = query.get("ids", "").split("|")[:_HITS]
        return {"entities": {entity_id: _entity(entity_id) for entity_id in ids}, "success": 1}
    if action == "wbsearchentities":
        wanted = fold(query.get("search", ""))
        found = [i for i, who in people().items() if wanted and fold(who[0]).startswith(wanted)]
        limit, offset = int(query.get("limit", "7")), int(query.get("continue", "0"))
        hits = [_hit(entity_id) for entity_id in found[offset : offset + limit]]
        return {"searchinfo": {"search": query.get("search", "")}, "search": hits, "success": 1}
    if action == "query":
        words = set(fold(query.get("srsearch", "").replace("~", " ")).split())
        found = [i for i, who in people().items() if words and words <= set(fold(who[0]).split())]
        return {"query": {"search": [{"ns": 0, "title": each} for each in found[:_HITS]]}}
    return {"error": {"code": "badvalue", "info": f"Unrecognized action: {action}"}}


def _hit(entity_id: str) -> Json:
    name = people()[entity_id][0]
    return {
        "id": entity_id,
        "title": entity_id,
        "label": name,
        "match": {"type": "label", "language": "en", "text": name},
    }


def _rows() -> Iterator[tuple[Any, ...]]:
    """Yields a list as archives have it: years, reversed names, a person whom no one knows."""
    known = list(people().items())
    for number in range(1, _ENTRIES + 1):
        _, (name, year, occupation) = known[fate(f"entry {number}", len(known))]
        given, _, family = name.partition(" ")
        if fate(f"turned {number}", 4) == 0:
            name = f"{family}, {given}"
        if fate(f"unknown {number}", 9) == 0:
            name, year = f"{given} {family}berg", year + 7
        year_text = "" if fate(f"undated {number}", 3) == 0 else str(year)
        said = _OCCUPATIONS[occupation] if fate(f"said {number}", 2) else ""
        yield f"HA-{number:04}", name, year_text, said


def sample_table() -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("id", "name", "born", "occupation"))
    writer.writerows(_rows())
    return text.getvalue()


def environment(url: str) -> dict[str, str]:
    # All servers of the demo share two gates, so this one must not be slower than the others.
    url = url.replace("127.0.0.1", "localhost")
    return {
        "HOLDFAST_LINKER_WIKIDATA_URL": f"{url}/w/api.php",
        "HOLDFAST_LINKER_SPACING_SECONDS": "0",
        "HOLDFAST_LINKER_CONCURRENCY": "8",
    }


async def fill(sample: Sample) -> None:
    """Adds one project with one dataset, once."""
    owner = "admin"
    if await sample.fetch("linker_project_by_name", {"owner_id": owner, "name": _PROJECT}):
        return
    mapping = guess_mapping(["id", "name", "born", "occupation"])
    assert mapping is not None
    project = await sample.control.change(add_project(owner, _PROJECT, ProjectRules()))
    dataset_id = await sample.control.change(
        add_dataset(project, "harbour-archive.csv", None, mapping)
    )
    options = project.job_options(mapping_text(mapping), dataset_id)
    job_id = await sample.upload("harbour-archive.csv", sample_table(), options)
    await sample.control.change(link_dataset(project, dataset_id, job_id))


DEMO = DemoPart(answer, environment, fill)
