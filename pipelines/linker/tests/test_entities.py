"""Entities: Wikibase's JSON with everything that is ordinary there."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast_linker.entities import (
    Kind,
    Value,
    candidate_of,
    parse_entities,
    parse_entity,
)
from pipelines.linker.tests.entity_world import (
    BORN,
    VIAF,
    Json,
    item_claim,
    place_claim,
    text_claim,
    time_claim,
    unknown_claim,
)


def _with(*claims: Json) -> Any:
    grouped: Json = {}
    for claim in claims:
        grouped.setdefault(claim["mainsnak"]["property"], []).append(claim)
    raw = {"id": "Q1", "labels": {"en": {"language": "en", "value": "one"}}, "claims": grouped}
    entity = parse_entity(raw)
    assert entity is not None
    return entity


def test_preferred_claims_count_alone_and_deprecated_ones_never() -> None:
    entity = _with(
        time_claim(BORN, "+1900-01-02", 11, rank="deprecated"),
        time_claim(BORN, "+1952-03-11", 11),
        time_claim(BORN, "+1953-00-00", 9, rank="preferred"),
    )
    assert [value.text for value in entity.best(BORN)] == ["1953"]
    assert [value.text for value in entity.current(BORN)] == ["1952-03-11", "1953"]
    only_wrong = _with(time_claim(BORN, "+1900-01-02", 11, rank="deprecated"))
    assert only_wrong.best(BORN) == []


@pytest.mark.parametrize(
    ("day", "precision", "shown"),
    [
        ("+1952-03-11", 11, "1952-03-11"),
        ("+1952-03-00", 10, "1952-03"),
        ("+1952-00-00", 9, "1952"),
        ("+1952-00-00", 11, "1952"),
        ("+1952-03-00", 11, "1952-03"),
        ("+1950-00-00", 8, "1950s"),
        ("+1901-00-00", 7, "century of 1901"),
        ("-0044-03-15", 11, "-0044-03-15"),
        ("+00000001952-03-11", 14, "1952-03-11"),
    ],
)
def test_times_are_known_as_far_as_their_precision_says(
    day: str, precision: int, shown: str
) -> None:
    (value,) = _with(time_claim(BORN, day, precision)).best(BORN)
    assert (value.kind, str(value.date)) == (Kind.DATE, shown)


def test_times_of_geology_and_year_zero_are_unknown() -> None:
    for claim in (time_claim(BORN, "-13798000000-00-00", 3), time_claim(BORN, "+0000-01-01", 9)):
        assert _with(claim).best(BORN) == [Value(Kind.UNKNOWN)]


def test_calendar_model_is_kept() -> None:
    (value,) = _with(time_claim(BORN, "+1685-03-21", 11, calendar="Q1985786")).best(BORN)
    assert value.date is not None
    assert value.date.julian


def test_unknown_and_absent_values_are_told_apart() -> None:
    entity = _with(
        unknown_claim("P570", "time", "somevalue"), unknown_claim("P40", "wikibase-item", "novalue")
    )
    assert entity.best("P570") == [Value(Kind.UNKNOWN)]
    assert entity.best("P40") == [Value(Kind.NONE)]


def test_values_have_their_kinds() -> None:
    old_item = item_claim("P31", "Q5")
    del old_item["mainsnak"]["datavalue"]["value"]["id"]
    quantity = text_claim("P1082", "", "quantity")
    quantity["mainsnak"]["datavalue"] = {"type": "quantity", "value": {"amount": "+42"}}
    named = text_claim("P1476", "", "monolingualtext")
    named["mainsnak"]["datavalue"] = {"type": "monolingualtext", "value": {"text": "Titel"}}
    strange = text_claim("P1", "", "musical-notation")
    strange["mainsnak"]["datavalue"] = {"type": "newfangled", "value": {"x": 1}}
    entity = _with(
        old_item,
        quantity,
        named,
        strange,
        text_claim(VIAF, "113230702", "external-id"),
        text_claim("P856", "https://a.example/", "url"),
        place_claim("P625", 1.5, -2.0),
    )
    shown = {
        pid: (claims[0].value.kind, claims[0].value.text) for pid, claims in entity.claims.items()
    }
    assert shown == {
        "P31": (Kind.ITEM, "Q5"),
        "P1082": (Kind.QUANTITY, "42"),
        "P1476": (Kind.TEXT, "Titel"),
        "P1": (Kind.UNKNOWN, ""),
        VIAF: (Kind.IDENTIFIER, "113230702"),
        "P856": (Kind.URL, "https://a.example/"),
        "P625": (Kind.PLACE, "1.5, -2.0"),
    }


def test_empty_maps_that_came_as_lists_and_entities_without_labels() -> None:
    entity = parse_entity(
        {"id": "Q1", "labels": [], "aliases": [], "claims": [], "descriptions": []}
    )
    assert entity is not None
    assert (entity.names, entity.label("en"), dict(entity.claims)) == ((), None, {})
    assert candidate_of(entity, "en").label == "Q1"


@pytest.mark.parametrize("missing", ["", True])
def test_missing_entities_are_none(missing: Any) -> None:
    reply = {"entities": {"Q9": {"id": "Q9", "missing": missing}}}
    assert parse_entities(reply, ["Q9", "Q10"]) == {"Q9": None, "Q10": None}


@pytest.mark.parametrize("key", ["Q8", "Q1"])
def test_redirected_entity_is_given_under_the_id_that_was_asked_for(key: str) -> None:
    raw = {"id": "Q1", "labels": [], "redirects": {"from": "Q8", "to": "Q1"}}
    entity = parse_entities({"entities": {key: raw}}, ["Q8"])["Q8"]
    assert entity is not None
    assert (entity.id, entity.redirected_from) == ("Q1", "Q8")


def test_identifiers_of_all_ranks_count_where_other_values_of_the_best_do() -> None:
    other = text_claim(VIAF, "2", "external-id")
    other["rank"] = "preferred"
    entity = _with(text_claim(VIAF, "1", "external-id"), other, item_claim("P31", "Q1549591"))
    candidate = candidate_of(entity, "en", {"Q1549591": frozenset({"Q515"})})
    assert [value.text for value in candidate.values[VIAF]] == ["1", "2"]
    assert candidate.types == {"Q1549591", "Q515"}
