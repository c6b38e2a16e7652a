"""Walking JSON APIs of every common style, to an end that the server declares."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast.errors import DiscoveryError, ItemError
from holdfast.http import HttpClient, HttpOptions
from holdfast.model import Page
from holdfast.sources.cursor_api import (
    CursorApi,
    LinkHeader,
    NextToken,
    NextUrl,
    Offset,
    PageNumber,
    next_link,
)
from tests.http_client import RecordingGates, http_client
from tests.world import Answer, Request, World, json_answer, redirect, text_answer

ROWS = [{"id": number, "name": f"row {number}"} for number in range(7)]


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with World() as world:
        yield world


@pytest.fixture
def gates() -> RecordingGates:
    return RecordingGates()


@pytest.fixture
async def client(gates: RecordingGates) -> AsyncIterator[HttpClient]:
    async with http_client(HttpOptions(allow_private_addresses=True), gates) as client:
        yield client


async def walk(client: HttpClient, source: CursorApi, cursor: Any = None) -> list[Page]:
    return [page async for page in source.pages(client, cursor)]


def rows_of(pages: list[Page]) -> list[Any]:
    return [record.input for page in pages for record in page.records]


async def walk_and_resume(client: HttpClient, source: CursorApi) -> None:
    """All rows come once, and from every cursor the rest comes again."""
    pages = await walk(client, source)
    assert rows_of(pages) == ROWS
    assert [page.end for page in pages] == [False] * (len(pages) - 1) + [True]
    for number, page in enumerate(pages[:-1]):
        cursor = json.loads(json.dumps(page.next_cursor))
        assert rows_of(await walk(client, source, cursor)) == rows_of(pages[number + 1 :])


def tokens(request: Request) -> Answer:
    start = int(request.query.get("after", "t0")[1:])
    end = start + 3
    token = f"t{end}" if end < len(ROWS) else None
    return json_answer({"data": {"rows": ROWS[start:end], "next": token}, "total": len(ROWS)})


async def test_a_token_in_the_reply_is_sent_back(client: HttpClient, world: World) -> None:
    world.on("/rows", tokens)
    source = CursorApi(
        world.url("/rows"),
        NextToken("data.next", "after"),
        records="data.rows",
        params={"lang": "en"},
        total="total",
        key="id",
    )
    await walk_and_resume(client, source)
    pages = await walk(client, source)
    assert [page.next_cursor for page in pages] == ["t3", "t6", None]
    assert {page.expected_count for page in pages} == {7}
    assert [record.key for record in pages[0].records] == ["0", "1", "2"]
    assert all(request.query["lang"] == "en" for request in world.asked("/rows"))


@pytest.mark.parametrize("end", [{}, {"next": None}, {"next": ""}, {"next": 0}, {"next": False}])
async def test_a_token_that_is_absent_or_empty_is_the_end(
    client: HttpClient, world: World, end: dict[str, Any]
) -> None:
    world.on("/rows", json_answer({"items": [], **end}))
    pages = await walk(client, CursorApi(world.url("/rows"), NextToken()))
    assert [(page.records, page.end) for page in pages] == [([], True)]


@pytest.mark.parametrize("token", [{"a": 1}, [1], True, 1.5])
async def test_a_value_that_is_not_a_token_is_an_error(
    client: HttpClient, world: World, token: Any
) -> None:
    world.on("/rows", json_answer({"items": [1], "next": token}))
    with pytest.raises(DiscoveryError, match="is not a token"):
        await walk(client, CursorApi(world.url("/rows"), NextToken()))


async def test_a_repeated_token_is_an_error(client: HttpClient, world: World) -> None:
    world.on("/rows", json_answer({"items": [{"id": 1}], "next": "same"}))
    with pytest.raises(DiscoveryError, match="same cursor again"):
        await walk(client, CursorApi(world.url("/rows"), NextToken()))


@pytest.mark.parametrize("form", ["{path}?at={at}&size=2", "http://{host}{path}?at={at}&size=2"])
async def test_a_next_url_is_followed_with_its_own_parameters(
    client: HttpClient, world: World, form: str
) -> None:
    def answer(request: Request) -> Answer:
        end = int(request.query.get("at", 0)) + 2
        target = form.format(path="/v1/rows", at=end, host=request.headers["host"].upper())
        rows = ROWS[end - 2 : end]
        return json_answer({"items": rows, "links": {"next": target if end < len(ROWS) else None}})

    world.on("/v1/rows", answer)
    source = CursorApi(world.url("/v1/rows"), NextUrl("links.next"), params={"size": 2, "at": 0})
    await walk_and_resume(client, source)


@pytest.mark.parametrize(
    "target",
    [
        "http://elsewhere.example/",
        "//elsewhere.example/x",
        "ftp:x",
        "http://127.0.0.1:1/",
        "http://[",
    ],
)
async def test_a_next_url_on_another_host_is_refused(
    client: HttpClient, world: World, target: str
) -> None:
    world.on("/rows", json_answer({"items": ROWS, "next": target}))
    with pytest.raises(DiscoveryError, match="the next page of"):
        await walk(client, CursorApi(world.url("/rows"), NextUrl()))


async def test_a_stored_cursor_on_another_host_is_refused(client: HttpClient, world: World) -> None:
    with pytest.raises(DiscoveryError, match="another host"):
        await walk(client, CursorApi(world.url("/rows"), NextUrl()), "http://elsewhere.example/")
    assert not world.requests


async def test_the_link_header_is_followed(client: HttpClient, world: World) -> None:
    def answer(request: Request) -> Answer:
        page = int(request.query.get("page", 1))
        links = [f'<{world.url("/rows?page=1")}>; rel="first"']
        if page < 4:
            links.append(f'<{world.url(f"/rows?page={page + 1}")}>; rel="next"')
        rows = ROWS[(page - 1) * 2 : page * 2]
        return json_answer(rows, headers={"Link": ", ".join(links)})

    world.on("/rows", answer)
    await walk_and_resume(client, CursorApi(world.url("/rows"), LinkHeader(), records=""))


@pytest.mark.parametrize(
    ("header", "target"),
    [
        ("", None),
        ('<a>; rel="prev"', None),
        ('<a?x=1,2>; rel="next"; title="later, much later"', "a?x=1,2"),
        ("<a>; rel=prev, <b>; rel=next", "b"),
        ('<a>; title="x"; REL="last Next"', "a"),
        ('<a>; rel="nextish"', None),
        ("next", None),
    ],
)
def test_the_next_link_is_found(header: str, target: str | None) -> None:
    assert next_link(header) == target


def numbered(request: Request) -> Answer:
    page = int(request.query["page"])
    size = min(int(request.query.get("per_page", 2)), 3)
    rows = ROWS[(page - 1) * size : page * size]
    pages = -(-len(ROWS) // size)
    return json_answer({"items": rows, "more": page < pages, "pages": pages})


@pytest.mark.parametrize(
    ("style", "requests"),
    [
        (PageNumber(), 5),
        (PageNumber(has_more="more"), 4),
        (PageNumber(last_page="pages"), 4),
        (PageNumber(size_parameter="per_page", size=3, has_more="more"), 3),
        (PageNumber(size_parameter="per_page", size=1000), 4),
    ],
)
async def test_numbered_pages_are_walked(
    client: HttpClient, world: World, style: PageNumber, requests: int
) -> None:
    world.on("/rows", numbered)
    source = CursorApi(world.url("/rows"), style)
    await walk(client, source)
    assert len(world.asked("/rows")) == requests
    await walk_and_resume(client, source)


def positioned(request: Request) -> Answer:
    start = int(request.query["offset"])
    size = min(int(request.query.get("limit", 2)), 3)  # lowered silently
    return json_answer(
        {"items": ROWS[start : start + size], "more": start + size < len(ROWS), "count": len(ROWS)}
    )


@pytest.mark.parametrize(
    ("style", "total", "requests"),
    [
        (Offset(), None, 4),
        (Offset(), "count", 3),
        (Offset(has_more="more"), None, 3),
        (Offset(size_parameter=None), "count", 4),
    ],
)
async def test_offsets_count_the_records_that_came(
    client: HttpClient, world: World, style: Offset, total: str | None, requests: int
) -> None:
    world.on("/rows", positioned)
    source = CursorApi(world.url("/rows"), style, total=total)
    await walk(client, source)
    assert len(world.asked("/rows")) == requests
    await walk_and_resume(client, source)


@pytest.mark.parametrize(
    ("style", "body"),
    [
        (Offset(), {"items": [], "total": 5}),
        (Offset(has_more="more"), {"items": [], "more": True}),
        (Offset(has_more="more"), {"items": [1]}),
        (PageNumber(has_more="more"), {"items": [1], "more": "false"}),
        (PageNumber(last_page="pages"), {"items": [1]}),
        (PageNumber(last_page="pages"), {"items": [1], "pages": "3"}),
        (NextToken(), {"items": [1], "total": -1}),
    ],
)
async def test_what_contradicts_itself_is_never_an_end(
    client: HttpClient, world: World, style: Any, body: dict[str, Any]
) -> None:
    world.on("/rows", json_answer(body))
    source = CursorApi(world.url("/rows"), style, total="total" if "total" in body else None)
    with pytest.raises(DiscoveryError):
        await walk(client, source)


async def test_a_count_that_the_server_gave_up_is_not_a_count(
    client: HttpClient, world: World
) -> None:
    world.on("/rows", json_answer({"items": [], "total": None}))
    pages = await walk(client, CursorApi(world.url("/rows"), NextToken(), total="total"))
    assert pages[0].expected_count is None


@pytest.mark.parametrize(
    "body", [{}, [], None, "text", {"items": None}, {"items": {}}, {"error": {"code": "readonly"}}]
)
async def test_a_reply_without_its_list_of_records_is_an_error(
    client: HttpClient, world: World, body: Any
) -> None:
    world.on("/rows", json_answer(body))
    with pytest.raises(DiscoveryError, match="no list of records"):
        await walk(client, CursorApi(world.url("/rows?key=secret"), NextToken()))


async def test_throttling_in_a_200_is_throttling(client: HttpClient, world: World) -> None:
    lag = {"error": {"code": "maxlag", "lag": 6}}
    world.on("/rows", json_answer(lag, headers={"Retry-After": "5"}))
    with pytest.raises(ItemError) as caught:
        await walk(client, CursorApi(world.url("/rows"), NextToken()))
    assert (caught.value.code, caught.value.retry_after) == ("RATE_LIMITED", 5.0)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (Answer(500), "NETWORK_ERROR"),
        (Answer(404), "CONTENT_NOT_FOUND"),
        (Answer(429, headers={"Retry-After": "5"}), "RATE_LIMITED"),
        (text_answer("<html>", content_type="text/html"), "INVALID_RESPONSE"),
        (Answer(body=b"{", headers={"Content-Type": "application/json"}), "PARSE_ERROR"),
        (redirect("http://elsewhere.example/home"), "INVALID_RESPONSE"),
    ],
)
async def test_a_failing_request_is_an_error_of_the_request_and_never_an_end(
    client: HttpClient, gates: RecordingGates, world: World, answer: Answer, code: str
) -> None:
    world.on("/rows", tokens)
    source = CursorApi(world.url("/rows"), NextToken("data.next", "after"), records="data.rows")
    pages = source.pages(client)
    first = await anext(pages)
    world.on("/rows", answer)
    with pytest.raises(ItemError) as caught:
        await anext(pages)
    assert caught.value.code == code
    gates.closed.clear()
    world.on("/rows", tokens)
    assert rows_of(await walk(client, source, first.next_cursor)) == ROWS[3:]


async def test_headers_are_sent_with_every_page(client: HttpClient, world: World) -> None:
    world.on("/rows", tokens)
    source = CursorApi(
        world.url("/rows"),
        NextToken("data.next", "after"),
        records="data.rows",
        headers={"Authorization": "Bearer s"},
    )
    await walk(client, source)
    assert {request.headers["authorization"] for request in world.asked("/rows")} == {"Bearer s"}


async def test_records_that_are_not_objects_become_rows(client: HttpClient, world: World) -> None:
    world.on("/rows", json_answer({"items": ["a", 1, {"id": None}]}))
    pages = await walk(client, CursorApi(world.url("/rows"), NextToken(), key="id"))
    assert rows_of(pages) == [{"value": "a"}, {"value": 1}, {"id": None}]
    assert {record.key for record in pages[0].records} == {None}


@pytest.mark.parametrize("cursor", ["3", -1, 1.5, True, {"a": 1}])
async def test_a_cursor_of_another_style_is_refused(
    client: HttpClient, world: World, cursor: Any
) -> None:
    for style in (Offset(), PageNumber()):
        with pytest.raises(DiscoveryError, match="the cursor"):
            await walk(client, CursorApi(world.url("/rows"), style), cursor)
    assert not world.requests


def test_the_fingerprint_names_the_query_and_not_the_credentials() -> None:
    def fingerprint(**changes: Any) -> str:
        query: dict[str, Any] = {
            "url": "https://a.example/",
            "style": Offset(size=10),
            "params": {"q": 1, "lang": "en"},
        }
        return CursorApi(**(query | changes)).fingerprint()

    same = fingerprint()
    assert fingerprint(params={"lang": "en", "q": 1}) == same
    assert fingerprint(headers={"Authorization": "other"}) == same
    others = {
        fingerprint(url="https://b.example/"),
        fingerprint(style=Offset(size=11)),
        fingerprint(style=NextToken()),
        fingerprint(params={"q": 2, "lang": "en"}),
        fingerprint(records="rows"),
    }
    assert len(others) == 5
    assert same not in others
