"""The client of Reconciliation services, against one that speaks 0.2 and against bad ones."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import ItemError
from holdfast.http import HttpClient
from holdfast_linker.entities import Kind
from holdfast_linker.entries import Entry, read_entry
from holdfast_linker.reconciliation import (
    Query,
    candidate_of_service,
    extend,
    fetch_service,
    parse_extension,
    parse_manifest,
    parse_results,
    query_of,
    reconcile,
)
from holdfast_linker.scoring import Thresholds, rank
from pipelines.linker.tests.labelled import MAPPING
from pipelines.linker.tests.reconciliation_server import ReconciliationServer
from pipelines.linker.tests.schemas import MANIFEST, QUERIES, RESULTS, check, fits
from pipelines.linker.tests.wikidata_server import html
from tests.http_client import RecordingGates
from tests.world import json_answer


def _entry(**row: str) -> Entry:
    return read_entry(row, MAPPING, 1)


async def test_manifest_is_read(http: HttpClient, service: ReconciliationServer) -> None:
    found = await fetch_service(http, service.url)
    assert (found.name, found.batch_size, found.extends) == ("A local service", 10, True)
    assert found.page_of("Q42") == "https://www.wikidata.org/wiki/Q42"


@pytest.mark.parametrize(
    ("manifest", "complaint"),
    [
        ({"name": "x", "identifierSpace": "a"}, "lacks schemaSpace"),
        (
            {"name": "x", "identifierSpace": "a", "schemaSpace": "b", "versions": ["1.0-draft"]},
            "speaks version 1.0-draft",
        ),
        (["x"], "has no manifest"),
    ],
)
def test_manifest_that_cannot_be_used_says_why(manifest: Any, complaint: str) -> None:
    with pytest.raises(ItemError, match=complaint):
        parse_manifest(manifest, "https://a.example")
    assert not fits(MANIFEST, manifest)


def test_service_of_the_first_version_names_no_versions() -> None:
    manifest = {"name": "x", "identifierSpace": "a", "schemaSpace": "b", "batchSize": 50}
    assert parse_manifest(manifest, "https://a.example").batch_size == 50


async def test_queries_go_ten_to_a_request_and_come_back_in_order(
    http: HttpClient, service: ReconciliationServer
) -> None:
    names = ["Douglas Adams", "Marie Curie", "Nobody Atall"] * 8
    queries = [query_of(_entry(name=name, born="1952-03-11", type="Q5")) for name in names]
    answers = await reconcile(
        http, await fetch_service(http, service.url), [query.to_json() for query in queries]
    )
    assert [len(batch) for batch in service.batches] == [10, 10, 4]
    first = [answer[0].id if answer else None for answer in answers if isinstance(answer, list)]
    assert first == ["Q42", "Q7186", None] * 8


@pytest.mark.parametrize(
    "row",
    [
        {"name": "x"},
        {"viaf": "113230702"},
        {"name": "x", "type": "Q5", "born": "1952", "occupation": "Q36180|writer"},
    ],
)
def test_every_query_fits_the_published_schema(row: dict[str, str]) -> None:
    check(QUERIES, {"q0": query_of(_entry(**row)).to_json()})


async def test_query_that_the_service_left_out_is_an_error_of_its_own(
    http: HttpClient, service: ReconciliationServer
) -> None:
    candidate = {"id": "Q1", "name": "one", "score": 5}
    service.trouble = lambda _batch, _number: json_answer(
        {"q0": {"result": [candidate]}, "q2": {"result": [{"id": "Q1"}]}}
    )
    known = await fetch_service(http, service.url)
    good, absent, incomplete = await reconcile(
        http, known, [Query(text).to_json() for text in "abc"]
    )
    assert isinstance(good, list)
    assert good[0].name == "one"
    assert isinstance(absent, ItemError)
    assert "no result for q1" in absent.message
    assert isinstance(incomplete, ItemError)


async def test_refusal_with_status_200_and_html_are_errors(
    http: HttpClient, service: ReconciliationServer, gates: RecordingGates
) -> None:
    known = await fetch_service(http, service.url)
    service.trouble = lambda _batch, _number: json_answer({"status": "error", "message": "no"})
    with pytest.raises(ItemError, match="refused the queries: no"):
        await reconcile(http, known, [Query("a").to_json()])
    assert gates.closed == {}
    # Whoever names a service may name anybody's page: the gate of its host stays open for others.
    for status, code in ((200, "INVALID_RESPONSE"), (502, "UNKNOWN_ERROR")):
        service.trouble = lambda _batch, _number, status=status: html(status)  # type: ignore[misc]
        with pytest.raises(ItemError) as failure:
            await reconcile(http, known, [Query("a").to_json()])
        assert failure.value.code == code
        assert gates.closed == {}


async def test_candidates_are_scored_by_what_the_service_tells_of_them(
    http: HttpClient, service: ReconciliationServer
) -> None:
    known = await fetch_service(http, service.url)
    entry = _entry(name="Douglas Adams", born="1952-03-11", type="Q5")
    (answer,) = await reconcile(http, known, [query_of(entry).to_json()])
    assert isinstance(answer, list)
    values = await extend(http, known, [found.id for found in answer], ["P569"])
    candidates = [candidate_of_service(f, entry.type, values.get(f.id, {})) for f in answer]
    accepted = rank(entry, candidates, Thresholds()).accepted
    assert accepted is not None
    assert accepted.candidate.id == "Q42"
    without = [candidate_of_service(found, entry.type, {}) for found in answer]
    assert rank(entry, without, Thresholds()).accepted is None


def test_extension_cells_have_their_kinds() -> None:
    cells = [
        {"str": "x"}, {"id": "Q5", "name": "human"}, {"date": "1952-03-11T00:00:00+00:00"},
        {"float": 1.5}, {"int": 3}, {"bool": True}, {"date": "soon"}, {},
    ]  # fmt: skip
    values = parse_extension({"rows": {"Q1": {"P1": cells}}})["Q1"]["P1"]
    assert [value.kind for value in values] == [
        Kind.TEXT, Kind.ITEM, Kind.DATE, Kind.QUANTITY, Kind.QUANTITY, Kind.UNKNOWN,
        Kind.TEXT, Kind.UNKNOWN,
    ]  # fmt: skip


def test_only_as_much_of_an_answer_is_taken_as_can_be_stored() -> None:
    """Whoever runs the service chose the answer."""
    text = "x\0" * 1_000_000
    candidate = {"id": "Q1", "name": text, "description": text, "score": 1}
    [taken] = parse_results({"q0": {"result": [candidate] * 1_000}}, ["q0"])
    assert isinstance(taken, list) and len(taken) == 100
    texts = (taken[0].name, taken[0].description)
    assert all(len(text) <= 2_000 and "\0" not in text for text in texts)


@pytest.mark.parametrize("entity_id", ["Q1\tP31\tQ5", "Q1\nQ2", "", "Q" * 201, "Q\0"])
def test_id_that_cannot_be_kept_as_it_is_makes_the_answer_invalid(entity_id: str) -> None:
    candidate = {"id": entity_id, "name": "x", "score": 1}
    [taken] = parse_results({"q0": {"result": [candidate]}}, ["q0"])
    assert isinstance(taken, ItemError) and "is not an id" in taken.message


def test_types_may_be_bare_ids() -> None:
    body = {"q0": {"result": [{"id": "Q1", "name": "x", "score": 1, "type": ["Q5", {"id": "Q6"}]}]}}
    check(RESULTS, body)
    (answer,) = parse_results(body, ["q0"])
    assert isinstance(answer, list)
    assert answer[0].types == ("Q5", "Q6")


def test_answer_without_end_is_read_to_a_limit() -> None:
    many = [{"str": "x" * 10_000}] * 1_000
    row = {f"P{number}": many for number in range(200)}
    values = parse_extension({"rows": {f"x{number}": row for number in range(1_000)}})
    assert len(values) == 50
    (first, *others) = values["x0"].values()
    assert (len(others), len(first), len(first[0].text)) == (99, 100, 1_000)
    candidate = {
        "id": "x",
        "name": "x" * 10_000,
        "score": 1,
        "type": ["t" * 1_000] * 1_000,
        "features": [{"id": f"{number}", "value": "x" * 9_000} for number in range(1_000)],
    }
    (found,) = parse_results({"q0": {"result": [candidate]}}, ["q0"])[0]  # type: ignore[misc]
    assert (len(found.name), len(found.types), len(found.features)) == (2_000, 50, 20)
    assert set(found.features.values()) == {False}
