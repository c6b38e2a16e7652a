"""The Action API as it really answers, over HTTP."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.errors import GateWait, ItemError
from holdfast.http import HttpClient
from holdfast_linker.lookups import DirectCalls, class_closure, direct_lookups
from holdfast_linker.wikidata import (
    Api,
    error_of,
    fetch_entities,
    parse_hits,
    parse_titles,
    search_entities,
    search_text,
    statement_queries,
    user_agent,
    word_query,
)
from pipelines.linker.tests.entity_world import EntityWorld
from pipelines.linker.tests.wikidata_server import WikidataServer, api_error, html, maxlag
from tests.http_client import RecordingGates
from tests.world import Answer, json_answer, text_answer


async def test_search_finds_by_prefix_and_pages(
    http: HttpClient, api: Api, wikidata: WikidataServer
) -> None:
    page = await search_entities(http, api, "Douglas Ad", language="en")
    assert [(hit.id, hit.label, hit.matched) for hit in page.hits] == [
        ("Q42", "Douglas Adams", "Douglas Adams")
    ]
    assert page.following is None
    first = await search_entities(http, api, "J", language="en", limit=3)
    assert first.following == 3
    second = await search_entities(http, api, "J", language="en", limit=3, offset=3)
    assert not {hit.id for hit in first.hits} & {hit.id for hit in second.hits}
    sent = wikidata.log[-1]
    assert (sent["maxlag"], sent["formatversion"], sent["format"]) == ("5", "2", "json")


async def test_api_is_called_whatever_robots_txt_says(
    http: HttpClient, api: Api, wikidata: WikidataServer
) -> None:
    await search_entities(http, api, "Douglas", language="en")
    assert {request.path for request in wikidata.requests} == {"/w/api.php"}


async def test_own_user_agent_is_sent_and_a_missing_contact_is_refused(
    http: HttpClient, api: Api, wikidata: WikidataServer
) -> None:
    agent = user_agent("holdfast/1.2", "mailto:ops@a.example", "httpx2/2.16")
    await search_entities(http, replace(api, user_agent=agent), "x", language="en")
    assert wikidata.requests[-1].headers["user-agent"] == agent
    with pytest.raises(ValueError, match="contact"):
        user_agent("holdfast/1.2", " ", "httpx2/2.16")
    with pytest.raises(ItemError) as raised:
        await search_entities(http, replace(api, user_agent="bare"), "x", language="en")
    assert raised.value.code == "ACCESS_DENIED"


async def test_entities_come_fifty_to_a_call(
    http: HttpClient, api: Api, wikidata: WikidataServer, entity_world: EntityWorld
) -> None:
    ids = [person.id for person in entity_world.people[:120]]
    entities = await fetch_entities(http, api, [*ids, *ids])
    assert list(entities) == ids
    assert all(entities.values())
    sizes = [len(call["ids"].split("|")) for call in wikidata.calls("wbgetentities")]
    assert sizes == [50, 50, 20]


async def test_redirects_missing_and_impossible_ids(
    http: HttpClient, api: Api, wikidata: WikidataServer, entity_world: EntityWorld
) -> None:
    source, target = next(iter(entity_world.redirects.items()))
    wanted = [source, "Q1234567", "Q99999999999", "L5", "42", "Q42"]
    entities = await fetch_entities(http, api, wanted)
    redirected = entities[source]
    assert redirected is not None
    assert (redirected.id, redirected.redirected_from) == (target, source)
    assert [entities[each] for each in wanted[1:5]] == [None] * 4
    assert entities["Q42"] is not None
    assert wikidata.log[-1]["ids"] == f"{source}|Q1234567|Q42"


async def test_one_id_that_fails_its_batch_is_left_out(
    http: HttpClient, api: Api, wikidata: WikidataServer
) -> None:
    def refuse(params: dict[str, str], _number: int) -> Answer | None:
        if "Q7" in params["ids"].split("|"):
            return api_error({"code": "no-such-entity", "info": "no such", "id": "Q7"})
        return None

    wikidata.trouble = refuse
    entities = await fetch_entities(http, api, ["Q42", "Q7", "Q937"])
    assert [entity is None for entity in entities.values()] == [False, True, False]


async def test_unknown_property_ids_are_none(http: HttpClient, api: Api) -> None:
    found = await fetch_entities(http, api, ["P569", "P99999"], properties=True)
    assert found["P569"] is not None
    assert found["P569"].datatype == "time"
    assert found["P99999"] is None


async def test_closure_follows_subclasses_though_they_go_in_circles(
    http: HttpClient, api: Api, wikidata: WikidataServer
) -> None:
    closure = await class_closure(DirectCalls(http, api), ["Q1549591", "Q5"], known={})
    assert closure["Q1549591"] == {"Q515", "Q486972", "Q35120"}
    assert closure["Q5"] == {"Q215627", "Q35120"}
    calls = len(wikidata.log)
    assert await class_closure(DirectCalls(http, api), ["Q5"], known=closure) == {}
    assert len(wikidata.log) == calls


async def test_text_search_finds_words_in_any_order_and_by_statement(
    http: HttpClient, api: Api, entity_world: EntityWorld
) -> None:
    assert await search_text(http, api, word_query("Adams (Douglas)!")) == ["Q42"]
    assert "Q42" in await search_text(http, api, word_query("Duglas Adams", fuzzy=True))
    people = [person for person in entity_world.people if person.viaf][:3]
    (query,) = statement_queries([("P214", person.viaf) for person in people])
    found = await search_text(http, api, query)
    assert found == sorted((person.id for person in people), key=lambda each: int(each[1:]))


def test_queries_never_grow_longer_than_the_search_takes() -> None:
    queries = statement_queries([("P214", f"{n:020}") for n in range(20)])
    assert [len(query) <= 300 for query in queries] == [True, True]
    assert sum(query.count("P214=") for query in queries) == 20
    assert all(len(query) <= 300 for query in statement_queries([("P1", "x y" * 50)] * 9))
    assert statement_queries([("P1", "x" * 400)]) == []
    assert len(word_query("word " * 200, fuzzy=True)) <= 300
    assert word_query('-intitle:"x" | ~') == "intitle x"


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        (maxlag(7.2, "9"), 9),
        (maxlag(7.2, "1"), 5),
        (api_error({"code": "ratelimited", "info": "slow down"}), 5),
        (api_error({"code": "readonly", "info": "being repaired"}), 5),
        (api_error({"code": "internal_api_error_DBQueryError", "info": "oops"}), 5),
        (html(429, {"Retry-After": "17"}), 17),
        (html(503, {"Retry-After": "20"}), 20),
    ],
)
async def test_not_now_closes_the_gate_for_all_and_uses_no_attempt(
    http: HttpClient,
    api: Api,
    wikidata: WikidataServer,
    gates: RecordingGates,
    answer: Answer,
    seconds: float,
) -> None:
    wikidata.trouble = lambda _params, _number: answer
    for _ in range(2):
        with pytest.raises(GateWait) as raised:
            await search_entities(http, api, "Douglas", language="en")
        assert raised.value.seconds == seconds
    assert gates.closed[wikidata.host][0] == seconds
    assert len(wikidata.log) == 1


@pytest.mark.parametrize(
    "answer",
    [html(502), html(503), html(500), html(200), html(200, {"Content-Type": "text/plain"})],
)
async def test_broken_provider_closes_the_gate_too(
    http: HttpClient,
    api: Api,
    wikidata: WikidataServer,
    gates: RecordingGates,
    answer: Answer,
) -> None:
    wikidata.trouble = lambda _params, _number: answer
    with pytest.raises(GateWait):
        await fetch_entities(http, api, ["Q42"])
    assert wikidata.host in gates.closed


async def test_provider_that_cannot_be_reached_closes_the_gate(
    http: HttpClient, gates: RecordingGates
) -> None:
    with pytest.raises(GateWait) as raised:
        await fetch_entities(http, Api(url="http://127.0.0.1:9/w/api.php"), ["Q42"])
    assert raised.value.reason.startswith("the provider cannot be reached")
    assert gates.passed == ["127.0.0.1:9"] * 2, "one lost connection is not enough"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (api_error({"code": "unknown_action", "info": "what"}), "INVALID_RESPONSE"),
        (json_answer({"errors": [{"code": "missingparam", "text": "x"}]}), "INVALID_RESPONSE"),
        (json_answer([1, 2]), "INVALID_RESPONSE"),
        (json_answer({"batchcomplete": True}), "INVALID_RESPONSE"),
        (text_answer("{not json", 200, "application/json"), "PARSE_ERROR"),
        (html(404), "CONTENT_NOT_FOUND"),
    ],
)
async def test_never_so_fails_the_item_and_leaves_the_gate_open(
    http: HttpClient,
    api: Api,
    wikidata: WikidataServer,
    gates: RecordingGates,
    answer: Answer,
    code: str,
) -> None:
    wikidata.trouble = lambda _params, _number: answer
    with pytest.raises(ItemError) as raised:
        await search_entities(http, api, "Douglas", language="en")
    assert raised.value.code == code
    assert gates.closed == {}


def test_hits_without_labels_and_with_only_a_display_are_read() -> None:
    body = {
        "search": [
            {"id": "Q1"},
            {"id": "Q2", "display": {"label": {"value": "two"}, "description": {"value": "d"}}},
        ],
        "search-continue": 2,
    }
    hits = parse_hits(body)
    assert [(hit.id, hit.label, hit.description) for hit in hits.hits] == [
        ("Q1", "", ""),
        ("Q2", "two", "d"),
    ]
    assert hits.following == 2


def test_titles_of_other_namespaces_are_no_items() -> None:
    body = {
        "query": {"search": [{"title": "Q1"}, {"title": "Property:P1"}, {"title": "Lexeme:L1"}]}
    }
    assert parse_titles(body) == ["Q1"]


def test_error_says_its_lag() -> None:
    error = error_of({"error": {"code": "maxlag", "info": "Waiting", "lag": 7.5}})
    assert error is not None
    assert error.message == "maxlag: Waiting (lag 7.5 s)"
    assert error_of({"success": 1}) is None


async def test_lookups_ask_each_thing_once_and_name_the_items_of_values(
    http: HttpClient, api: Api, wikidata: WikidataServer
) -> None:
    lookups = direct_lookups(http, api)
    for _ in range(2):
        assert await lookups.by_name("Douglas Adams", 10, 0) == ["Q42"]
        candidates = await lookups.candidates(["Q42", "Q404404"], ["P106"])
    assert list(candidates) == ["Q42"]
    assert candidates["Q42"].values["P106"][0].names == ("writer",)
    assert candidates["Q42"].types == {"Q5", "Q215627", "Q35120"}
    assert len(wikidata.calls("wbsearchentities")) == 1
    asked = [each for call in wikidata.calls("wbgetentities") for each in call["ids"].split("|")]
    assert sorted(asked) == sorted(["Q42", "Q404404", "Q5", "Q215627", "Q35120", "Q36180"])
