"""Holdfast's own Reconciliation service, checked by the published schemas."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast_linker.answering import (
    BadQueries,
    KnownEntity,
    Term,
    answer,
    flyout,
    manifest,
    preview,
    read_queries,
    suggest_entities,
    suggest_properties,
    suggest_types,
)
from holdfast_linker.dates import PartialDate, Precision, parse_date
from holdfast_linker.entities import Kind, Value
from holdfast_linker.extending import _number_cell, extend, read_extension
from holdfast_linker.names import fold
from holdfast_linker.reconciliation import (
    parse_extension,
    parse_manifest,
    parse_results,
)
from holdfast_linker.scoring import Thresholds
from pipelines.linker.tests.schemas import (
    EXTENSION_QUERY,
    EXTENSION_RESULT,
    MANIFEST,
    QUERIES,
    RESULTS,
    SUGGESTED_ENTITIES,
    SUGGESTED_PROPERTIES,
    SUGGESTED_TYPES,
    check,
    fits,
)

HUMAN, FILM = Term("Q5", "human"), Term("Q11424", "film")


def _born(text: str) -> dict[str, list[Value]]:
    return {"P569": [Value(Kind.DATE, text, date=parse_date(text))]}


ADAMS = KnownEntity(
    "Q42", "Douglas Adams", ("Douglas Noel Adams",), "English <writer>", (HUMAN,),
    frozenset({"Q215627"}), _born("1952-03-11"), decided=("D. Adams of the Guide",),
)  # fmt: skip
OTHER = KnownEntity("Q99", "Douglas Adams", (), "engineer", (HUMAN,), values=_born("1876"))
MOVIE = KnownEntity("Q7", "Douglas Adams: A Life", (), "", (FILM,))


class Shelf:
    """A repository of a handful of entities."""

    def __init__(self, *known: KnownEntity) -> None:
        self._known = known

    async def named_like(self, text: str, limit: int) -> Sequence[KnownEntity]:
        words = set(fold(text).split())

        def near(known: KnownEntity) -> bool:
            names = (known.name, *known.names, *known.decided)
            return any(words & set(fold(name).split()) for name in names)

        return [known for known in self._known if near(known)][:limit]

    async def with_value(self, property_id: str, text: str, limit: int) -> Sequence[KnownEntity]:
        return [
            k for k in self._known if any(v.text == text for v in k.values.get(property_id, ()))
        ]

    async def get(self, entity_id: str) -> KnownEntity | None:
        return next((known for known in self._known if known.id == entity_id), None)

    async def get_many(self, ids: Sequence[str]) -> Sequence[KnownEntity]:
        return [known for known in self._known if known.id in ids]

    async def properties_of(self, type_id: str, limit: int) -> Sequence[Term]:
        return [Term("P569", "date of birth")]

    async def types(self, prefix: str, limit: int) -> Sequence[Term]:
        return [each for each in (HUMAN, FILM) if each.name.startswith(prefix)]

    async def properties(self, prefix: str, limit: int) -> Sequence[Term]:
        return [Term("P569", "date of birth", "when")]


SHELF = Shelf(ADAMS, OTHER, MOVIE)


async def test_values_are_extended_by_their_kind() -> None:
    day = Value(Kind.DATE, "1952-03-11", date=PartialDate(1952, 3, 11, Precision.DAY))
    year = Value(Kind.DATE, "1952", date=PartialDate(1952))
    julian = Value(Kind.DATE, "", date=PartialDate(1564, 4, 26, Precision.DAY, julian=True))
    values = {
        "P1": [day, year, julian],
        "P2": [Value(Kind.ITEM, "Q42"), Value(Kind.ITEM, "Q1", names=("one",))],
        "P3": [Value(Kind.QUANTITY, "3"), Value(Kind.QUANTITY, "3.5"), Value(Kind.QUANTITY, "x")],
        "P4": [Value(Kind.UNKNOWN), Value(Kind.NONE), Value(Kind.PLACE, "", point=(1.5, 2.0))],
    }
    shelf = Shelf(ADAMS, KnownEntity("Q5", "thing", values=values))
    wanted = {"ids": ["Q5"], "properties": [{"id": pid} for pid in values]}
    check(EXTENSION_QUERY, wanted)
    result = await extend(read_extension(json.dumps(wanted), 10), shelf, {"P1": "born"})
    check(EXTENSION_RESULT, result)
    assert result["meta"][:2] == [{"id": "P1", "name": "born"}, {"id": "P2", "name": "P2"}]
    assert result["rows"]["Q5"] == {
        "P1": [{"date": "1952-03-11T00:00:00Z"}, {"str": "1952"}, {"str": "1564-04-26"}],
        "P2": [{"id": "Q42", "name": "Douglas Adams"}, {"id": "Q1", "name": "one"}],
        "P3": [{"int": 3}, {"float": 3.5}, {"str": "x"}],
        "P4": [{}, {"str": "1.5,2.0"}],
    }
    assert parse_extension(result)["Q5"]["P2"][1].names == ("one",), "as our own client reads it"


async def _ask(**queries: Any) -> dict[str, Any]:
    check(QUERIES, queries)
    results = await answer(read_queries(json.dumps(queries), 50), SHELF, Thresholds())
    check(RESULTS, results)
    parse_results(results, list(queries))
    return {key: value["result"] for key, value in results.items()}


def test_manifest_fits_the_schema_and_our_own_client() -> None:
    base = "https://holdfast.example/reconcile/token"
    made = manifest("Links", base, "https://www.wikidata.org/wiki/{{id}}", [HUMAN])
    check(MANIFEST, made)
    assert parse_manifest(made, base).name == "Links"
    assert made["preview"]["url"] == f"{base}/preview?id={{{{id}}}}"


async def test_answers_have_scores_features_and_a_match() -> None:
    born = [{"pid": "P569", "v": "1952-03-11"}]
    query = {"query": "Douglas Adams", "type": "Q5", "properties": born, "limit": 2}
    results = await _ask(q0=query)
    first, second = results["q0"]
    assert (first["id"], first["match"], first["score"]) == ("Q42", True, 100)
    assert {"id": "P569", "value": 100} in first["features"]
    assert (second["id"], second["match"]) == ("Q99", False)


async def test_what_people_decided_is_a_match_by_its_name_alone() -> None:
    (first, *_) = (await _ask(q0={"query": "d. adams OF the guide"}))["q0"]
    assert (first["id"], first["match"], first["score"]) == ("Q42", True, 100)
    assert {"id": "decided", "value": True} in first["features"]
    undecided = (await _ask(q0={"query": "Douglas Adams"}))["q0"]
    assert [result["match"] for result in undecided] == [False] * 3


@pytest.mark.parametrize(
    ("types", "strict", "ids"),
    [
        ("Q5", "any", {"Q42", "Q99"}),
        (["Q5", "Q11424"], "any", {"Q42", "Q99", "Q7"}),
        (["Q5", "Q215627"], "all", {"Q42"}),
        (["Q5", "Q1"], "should", {"Q42", "Q99", "Q7"}),
        ("Q11424", "should", {"Q7"}),
    ],
)
async def test_types_are_filtered_as_asked(types: Any, strict: str, ids: set[str]) -> None:
    query = {"query": "Douglas Adams", "type": types, "type_strict": strict}
    assert {result["id"] for result in (await _ask(q0=query))["q0"]} == ids


async def test_query_by_property_alone_is_answered() -> None:
    born = [{"pid": "P569", "v": ["1952-03-11", 7, True, {"id": "Q1", "name": "x"}]}]
    results = await _ask(q0={"properties": born}, q1={"query": ""}, q2={"query": "zzz"})
    assert [result["id"] for result in results["q0"]] == ["Q42"]
    assert (results["q1"], results["q2"]) == ([], [])


@pytest.mark.parametrize(
    ("text", "status", "complaint"),
    [
        ("{", 400, "is not JSON"),
        ("[]", 400, "must be an object"),
        ('{"q0": "x"}', 400, "'q0' is not an object"),
        ('{"q0": {"query": "x", "lang": "en"}}', 400, "unknown key 'lang'"),
        ('{"q0": {}}', 400, "neither `query` nor `properties`"),
        ('{"q0": {"properties": []}}', 400, "neither `query` nor `properties`"),
        ('{"q0": {"query": 5}}', 400, "is not a text"),
        ('{"q0": {"query": "x", "type": 5}}', 400, "must be an id"),
        ('{"q0": {"query": "x", "type_strict": "some"}}', 400, "any, should or all"),
        ('{"q0": {"query": "x", "limit": "5"}}', 400, "is not a number"),
        ('{"q0": {"query": "x", "properties": [{"pid": "P1"}]}}', 400, "needs `pid` and `v`"),
        ('{"q0": {"query": "x", "properties": [{"pid": "P1", "v": {}}]}}', 400, "neither a text"),
        (json.dumps({f"q{n}": {"query": "x"} for n in range(1000)}), 413, "1,000 queries"),
        (json.dumps({"q0": {"properties": [{"pid": "P1", "v": ["x"] * 501}]}}), 413, "501 values"),
        (json.dumps({"q0": {"query": "x", "type": ["Q5"] * 101}}), 400, "more than 100 ids"),
    ],
)
def test_bad_requests_are_refused_with_a_reason(text: str, status: int, complaint: str) -> None:
    with pytest.raises(BadQueries) as raised:
        read_queries(text, 50)
    assert raised.value.status == status
    assert complaint in raised.value.message


def test_nothing_that_a_database_refuses_is_looked_up() -> None:
    given = [{"pid": "P1\0", "v": [{"id": "Q\0" + "5" * 300}, "a\0"]}]
    [query] = read_queries(json.dumps({"q0": {"properties": given}}), 50).values()
    [(pid, values)] = query.properties
    assert "\0" not in "".join([pid, *values]) and max(map(len, values)) == 200


_KEYS = ["query", "type", "type_strict", "limit", "properties", "pid", "v", "id"]
_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 99), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["query", "type", "type_strict", "limit", "properties", "pid", "v", "id"]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.dictionaries(st.text(min_size=1, max_size=3), _JSON, max_size=3))
def test_exactly_what_the_schema_allows_is_read(batch: dict[str, Any]) -> None:
    try:
        read_queries(json.dumps(batch), 50)
        accepted = True
    except BadQueries:
        accepted = False
    assert accepted == fits(QUERIES, batch)


async def test_suggestions_fit_their_schemas() -> None:
    entities = await suggest_entities("Doug", Shelf(ADAMS))
    check(SUGGESTED_ENTITIES, entities)
    assert entities["result"] == []
    entities = await suggest_entities("Douglas", SHELF)
    check(SUGGESTED_ENTITIES, entities)
    assert [each["id"] for each in entities["result"]] == ["Q42", "Q99", "Q7"]
    assert (await suggest_entities(" \u200e", SHELF))["result"] == []
    types = await suggest_types("hu", SHELF)
    check(SUGGESTED_TYPES, types)
    assert types["result"] == [{"id": "Q5", "name": "human"}]
    check(SUGGESTED_PROPERTIES, await suggest_properties("date", SHELF))


async def test_preview_is_escaped_and_absent_for_the_unknown() -> None:
    page = await preview("Q42", SHELF)
    assert page is not None
    assert "English &lt;writer&gt;" in page
    assert await preview("Q1", SHELF) is None
    shown = await flyout("Q42", SHELF)
    assert shown is not None
    assert shown["id"] == "Q42"
    assert "<writer>" not in shown["html"]
    assert await flyout("Q1", SHELF) is None


def test_what_is_no_id_and_no_number_is_not_taken_for_one() -> None:
    wanted = {"ids": ["a\0b"], "properties": [{"id": "P1"}]}
    with pytest.raises(BadQueries, match="NUL"):
        read_extension(json.dumps(wanted), 10)
    assert _number_cell("inf") == {"str": "inf"}
    assert _number_cell("2.5") == {"float": 2.5}
