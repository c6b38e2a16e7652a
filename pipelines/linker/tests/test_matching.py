"""Matching: which searches are made, and when they end."""

from __future__ import annotations

import pytest

from holdfast.http import HttpClient
from holdfast_linker.entries import Entry, read_entry
from holdfast_linker.lookups import direct_lookups
from holdfast_linker.matching import ByIdentifier, ByName, ByWords, match, plan
from holdfast_linker.scoring import Thresholds
from holdfast_linker.wikidata import Api
from pipelines.linker.tests.entity_world import EntityWorld
from pipelines.linker.tests.labelled import MAPPING
from pipelines.linker.tests.wikidata_server import WikidataServer


def _entry(**row: str) -> Entry:
    return read_entry(row, MAPPING, 1)


def test_plan_begins_with_what_tells_most() -> None:
    steps = plan(
        _entry(name="Чайковский, Пётр", also="Tchaikovsky", viaf="http://viaf.org/viaf/99")
    )
    assert steps[0] == ByIdentifier("P214", "99")
    names = [step.text for step in steps if isinstance(step, ByName) and not step.offset]
    assert names == ["Пётр Чайковский", "Petr Chaykovskiy", "Tchaikovsky"]
    words = [(step.text, step.fuzzy, step.whole) for step in steps if isinstance(step, ByWords)]
    assert words == [
        ("Пётр Чайковский", False, True),
        ("Пётр Чайковский", True, True),
        ("Чайковский", True, False),
        ("Пётр", True, False),
    ]


def test_there_is_nothing_to_search_for_an_empty_entry() -> None:
    assert plan(_entry(born="1952")) == []


async def test_clear_match_takes_one_search(
    http: HttpClient, api: Api, wikidata: WikidataServer
) -> None:
    entry = _entry(name="Douglas Adams", born="1952-03-11", type="Q5")
    result = await match(entry, direct_lookups(http, api), Thresholds())
    assert result.ranking.accepted is not None
    assert (result.ranking.accepted.candidate.id, result.searches) == ("Q42", 1)
    assert len(wikidata.calls("query")) == 0


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"name": "EINSTEIN Albert", "born": "1879"}, "Q937"),
        ({"name": "Пётр Ильич Чайковский"}, "Q7315"),
        ({"name": "Vincent vun Gogh", "born": "1853"}, "Q5582"),
        ({"name": "Sophie Unknown", "also": "Marie Curie"}, "Q7186"),
        ({"name": "Shakespeare, William"}, "Q692"),
    ],
)
async def test_right_one_comes_first_however_the_name_is_written(
    http: HttpClient, api: Api, row: dict[str, str], expected: str
) -> None:
    result = await match(_entry(**row), direct_lookups(http, api), Thresholds())
    assert result.ranking.candidates[0].candidate.id == expected


async def test_many_namesakes_are_looked_at_beyond_the_first_page(
    http: HttpClient, api: Api, entity_world: EntityWorld
) -> None:
    names = [person.latin for person in entity_world.people if person.latin_known]
    name = max(set(names), key=names.count)
    namesakes = [p for p in entity_world.people if p.latin == name and p.precision == 11]
    assert names.count(name) > 10
    last = namesakes[-1]
    assert last.born is not None
    entry = _entry(name=name, born=last.born.isoformat())
    result = await match(entry, direct_lookups(http, api), Thresholds())
    assert result.ranking.candidates[0].candidate.id == last.id


async def test_redirected_ids_are_one_candidate(
    http: HttpClient, api: Api, entity_world: EntityWorld
) -> None:
    source, target = next(iter(entity_world.redirects.items()))
    candidates = await direct_lookups(http, api).candidates([source, target], [])
    assert {candidate.id for candidate in candidates.values()} == {target}


async def test_nobody_is_found_for_a_name_that_nobody_has(http: HttpClient, api: Api) -> None:
    result = await match(_entry(name="Xq Zzyx"), direct_lookups(http, api), Thresholds())
    assert (result.ranking.candidates, result.ranking.reason) == ((), "there is no candidate")


@pytest.mark.parametrize(
    "name",
    [
        "A" * 10_000,
        "word " * 2_000,
        "é\u0301" * 5_000,
        "\u202eegroeG\u202c \ud83d half",
        '|~"():*?!-',
        "'); DROP TABLE--\x00",
        "\u0627\u0644" * 600,
        "\U0001f9d9",
    ],
)
async def test_strange_names_end_in_a_state_and_break_no_request(
    http: HttpClient, api: Api, wikidata: WikidataServer, name: str
) -> None:
    entry = _entry(name=name, born="1952-02-30")
    result = await match(entry, direct_lookups(http, api), Thresholds())
    assert result.ranking.accepted is None
    assert all(len(call["search"]) <= 250 for call in wikidata.calls("wbsearchentities"))
    assert all(len(call["srsearch"]) <= 300 for call in wikidata.calls("query"))
