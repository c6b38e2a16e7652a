"""What the polite client sends, returns and refuses, against a real server on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast.errors import ERROR_CODES, GateWait, ItemError
from holdfast.http import HttpClient, HttpOptions
from tests.http_client import RecordingGates, http_client
from tests.world import Answer, Request, World, json_answer, redirect, text_answer

OPEN = HttpOptions(
    user_agent="holdfast-test/1 (test@example.com)",
    timeout_seconds=10,
    connect_timeout_seconds=5,
    max_bytes=1_000_000,
    obey_robots=False,
    allow_private_addresses=True,
)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with World() as world:
        yield world


@pytest.fixture
def gates() -> RecordingGates:
    return RecordingGates()


@pytest.fixture
async def client(gates: RecordingGates) -> AsyncIterator[HttpClient]:
    async with http_client(OPEN, gates) as client:
        yield client


async def failure(awaitable: Any) -> ItemError:
    with pytest.raises(ItemError) as caught:
        await awaitable
    assert caught.value.code in ERROR_CODES
    return caught.value


def gate(world: World) -> str:
    return f"127.0.0.1:{world.port}"


# What a pipeline gets


async def test_a_json_reply_is_read_in_one_line(client: HttpClient, world: World) -> None:
    world.on("/x", json_answer({"price": 12}))
    reply = await client.get(world.url("/x?lang=en"), params={"q": "tea & milk", "page": None})
    assert reply.json()["price"] == 12
    assert reply.status == 200
    assert reply.ok
    assert world.requests[0].query == {"lang": "en", "q": "tea & milk"}


async def test_the_user_agent_and_the_codings_are_sent(client: HttpClient, world: World) -> None:
    world.on("/x", json_answer(1))
    await client.get(world.url("/x"), headers={"X-Own": "1"})
    sent = world.requests[0].headers
    assert sent["user-agent"] == OPEN.user_agent
    assert sent["accept-encoding"] == "gzip, deflate"
    assert sent["x-own"] == "1"
    assert sent["host"] == gate(world)


@pytest.mark.parametrize(
    ("options", "content_type", "body"),
    [
        ({"json": {"a": [1]}}, "application/json", b'{"a":[1]}'),
        ({"data": {"a": "1 2", "b": ["x", "y"]}}, "application/x-www-form-urlencoded", None),
        ({"content": b"\0raw", "headers": {"Content-Type": "image/png"}}, "image/png", b"\0raw"),
        ({"content": "ž"}, "text/plain; charset=utf-8", "ž".encode()),
    ],
)
async def test_a_body_is_posted_with_its_type(
    client: HttpClient, world: World, options: Any, content_type: str, body: bytes | None
) -> None:
    world.on("/x", json_answer(1))
    await client.post(world.url("/x"), **options)
    assert world.requests[0].method == "POST"
    assert world.requests[0].headers["content-type"] == content_type
    assert world.requests[0].body == (body or b"a=1+2&b=x&b=y")


async def test_text_is_decoded_by_its_charset(client: HttpClient, world: World) -> None:
    world.on(
        "/1250",
        Answer(
            body="žuto".encode("cp1250"),
            headers={"Content-Type": "text/html; charset=windows-1250"},
        ),
    )
    world.on("/bom", Answer(body=b"\xef\xbb\xbfabc"))
    world.on(
        "/unknown", Answer(body=b"abc", headers={"Content-Type": "text/plain; charset=klingon"})
    )
    assert (await client.get(world.url("/1250"))).text == "žuto"
    assert (await client.get(world.url("/bom"))).text == "abc"
    assert (await client.get(world.url("/unknown"))).text == "abc"


async def test_json_with_a_byte_order_mark_is_read(client: HttpClient, world: World) -> None:
    world.on(
        "/x", Answer(body=b'\xef\xbb\xbf{"a":1}', headers={"Content-Type": "application/json"})
    )
    assert (await client.get(world.url("/x"))).json() == {"a": 1}


async def test_html_instead_of_json_is_an_invalid_response_with_a_sample(
    client: HttpClient, world: World
) -> None:
    world.on("/x", text_answer("<html>Please log in</html>", content_type="text/html"))
    reply = await client.get(world.url("/x?key=secret"))
    with pytest.raises(ItemError, match=r"INVALID_RESPONSE.*text/html.*Please log in") as caught:
        reply.json()
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("body", [b"", b'{"a":', b"null null", b"\xff\xfe{\0}\0"])
async def test_a_body_that_is_not_json_is_a_parse_error(
    client: HttpClient, world: World, body: bytes
) -> None:
    world.on("/x", Answer(body=body, headers={"Content-Type": "application/json; charset=utf-8"}))
    reply = await client.get(world.url("/x"))
    with pytest.raises(ItemError, match="PARSE_ERROR"):
        reply.json()


async def test_connections_are_kept_and_used_again(client: HttpClient, world: World) -> None:
    world.on("/x", json_answer(1))
    for _ in range(5):
        await client.get(world.url("/x"))
    assert world.connections == 1


# Statuses


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "INVALID_RESPONSE"),
        (401, "AUTH_FAILED"),
        (402, "INVALID_RESPONSE"),
        (403, "ACCESS_DENIED"),
        (404, "CONTENT_NOT_FOUND"),
        (408, "TIMEOUT"),
        (410, "CONTENT_REMOVED"),
        (425, "NETWORK_ERROR"),
        (429, "RATE_LIMITED"),
        (451, "ACCESS_DENIED"),
        (500, "NETWORK_ERROR"),
        (501, "INVALID_RESPONSE"),
        (502, "NETWORK_ERROR"),
        (503, "NETWORK_ERROR"),
        (504, "NETWORK_ERROR"),
        (300, "INVALID_RESPONSE"),
    ],
)
async def test_a_status_becomes_a_code(
    client: HttpClient, world: World, status: int, code: str
) -> None:
    world.on("/x", text_answer("what went wrong", status))
    error = await failure(client.get(world.url("/x")))
    assert error.code == code
    assert "what went wrong" in error.message


async def test_a_pipeline_may_look_at_the_status_itself(client: HttpClient, world: World) -> None:
    world.on("/x", json_answer({"error": "query_too_long"}, 402))
    reply = await client.get(world.url("/x"), raise_for_status=False)
    assert (reply.status, reply.json()) == (402, {"error": "query_too_long"})


async def test_not_modified_is_not_an_error(client: HttpClient, world: World) -> None:
    world.on("/x", Answer(304))
    assert (await client.get(world.url("/x"), headers={"If-None-Match": '"a"'})).status == 304


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "0"}, 1.0),
        ({"Retry-After": "999999999"}, 3600.0),
        (
            {
                "Retry-After": "Wed, 21 Oct 2015 07:30:00 GMT",
                "Date": "Wed, 21 Oct 2015 07:28:00 GMT",
            },
            120.0,
        ),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
async def test_retry_after_closes_the_gate_for_all(
    client: HttpClient,
    gates: RecordingGates,
    world: World,
    status: int,
    headers: dict[str, str],
    seconds: float,
) -> None:
    world.on("/x", Answer(status, b"<html>slow down</html>", headers))
    error = await failure(client.get(world.url("/x")))
    assert error.code == "RATE_LIMITED"
    assert error.retry_after == seconds
    assert gates.closed == {gate(world): (seconds, f"HTTP {status}")}
    with pytest.raises(GateWait):
        await client.get(world.url("/other"))


@pytest.mark.parametrize("headers", [{}, {"Retry-After": "soon"}])
async def test_a_429_that_does_not_say_how_long_closes_the_gate_with_jitter(
    client: HttpClient, gates: RecordingGates, world: World, headers: dict[str, str]
) -> None:
    world.on("/x", Answer(429, headers=headers))
    error = await failure(client.get(world.url("/x")))
    assert error.retry_after is not None
    assert 30 <= error.retry_after <= 45
    assert gates.closed[gate(world)][0] == error.retry_after


async def test_a_503_without_retry_after_leaves_the_gate_open(
    client: HttpClient, gates: RecordingGates, world: World
) -> None:
    world.on("/x", Answer(503))
    await failure(client.get(world.url("/x")))
    assert not gates.closed


async def test_looking_at_a_429_oneself_still_closes_the_gate(
    client: HttpClient, gates: RecordingGates, world: World
) -> None:
    world.on("/x", Answer(429, headers={"Retry-After": "9"}))
    reply = await client.get(world.url("/x"), raise_for_status=False)
    assert reply.throttled
    assert gates.closed[gate(world)][0] == 9


async def test_a_pipeline_can_say_that_a_200_is_throttling(
    client: HttpClient, gates: RecordingGates, world: World
) -> None:
    lag = {"error": {"code": "maxlag", "lag": 6}}
    world.on("/api", json_answer(lag, headers={"Retry-After": "5"}))
    reply = await client.get(world.url("/api"))
    assert reply.json() == lag
    assert not gates.closed
    error = await failure(client.throttled(reply, "the database lags"))
    assert (error.code, error.retry_after) == ("RATE_LIMITED", 5.0)
    assert gates.closed == {gate(world): (5.0, "the database lags")}
    error = await failure(client.throttled(reply, "the database lags", at_least=60))
    assert error.retry_after == 60.0
    assert gates.closed == {gate(world): (60.0, "the database lags")}


async def test_a_pipeline_can_say_that_a_200_is_no_answer(
    client: HttpClient, gates: RecordingGates, world: World
) -> None:
    world.on("/api", text_answer("closed for maintenance"))
    reply = await client.get(world.url("/api"), params={"key": "secret"})
    with pytest.raises(ItemError) as refused:
        client.unavailable(reply, "the site is being maintained")
    assert refused.value.code == "NETWORK_ERROR"
    assert "being maintained" in str(refused.value) and "secret" not in str(refused.value)
    assert not gates.closed


# Gates


async def test_gate_learns_how_requests_ended(
    client: HttpClient, gates: RecordingGates, world: World
) -> None:
    world.on("/fine", json_answer(1))
    world.on("/broken", Answer(502))
    for path in ("/fine", "/broken"):
        await client.get(world.url(path), raise_for_status=False)
    assert (gates.throttles, gates.failures) == (0, 1)
    world.on("/busy", Answer(429))
    await client.get(world.url("/busy"), raise_for_status=False)
    assert (gates.throttles, gates.failures) == (1, 1)


async def test_client_through_other_gates_shares_the_connections(
    client: HttpClient, gates: RecordingGates, world: World
) -> None:
    world.on("/a", json_answer(1))
    other = RecordingGates()
    await client.get(world.url("/a"))
    await client.through(other).get(world.url("/a"))
    assert (gates.passed, other.passed) == ([gate(world)], [gate(world)])
    assert world.connections == 1


async def test_every_request_passes_the_gate_of_its_own_host(
    client: HttpClient, gates: RecordingGates, world: World
) -> None:
    async with World() as other:
        world.on("/a", redirect(other.url("/b", host="LOCALHOST")))
        other.on("/b", redirect("/c"))
        other.on("/c", json_answer(1))
        reply = await client.get(world.url("/a"))
        assert gates.passed == [gate(world), *[f"localhost:{other.port}"] * 2]
        assert reply.url == f"http://localhost:{other.port}/c"
        assert reply.history == (world.url("/a"), f"http://localhost:{other.port}/b")


async def test_the_body_is_read_inside_the_gate(
    client: HttpClient, gates: RecordingGates, world: World
) -> None:
    inside = asyncio.Event()
    proceed = asyncio.Event()

    async def slow(_request: Request) -> Answer:
        inside.set()
        await proceed.wait()
        return json_answer(1)

    world.on("/x", slow)
    call = asyncio.create_task(client.get(world.url("/x")))
    await inside.wait()
    assert gates.in_flight == 1
    proceed.set()
    await call
    assert gates.in_flight == 0


async def test_a_cancelled_call_leaves_its_gate_and_its_connection(
    client: HttpClient, gates: RecordingGates, world: World
) -> None:
    inside = asyncio.Event()

    async def never(_request: Request) -> Answer:
        inside.set()
        await asyncio.Event().wait()
        raise AssertionError

    world.on("/never", never)
    world.on("/x", json_answer(1))
    call = asyncio.create_task(client.get(world.url("/never")))
    await inside.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert gates.in_flight == 0
    assert (await client.get(world.url("/x"))).ok


# Redirects


async def test_a_redirect_to_html_is_followed_and_seen(client: HttpClient, world: World) -> None:
    world.on("/api", redirect("/home"))
    world.on("/home", text_answer("<html>home</html>", content_type="text/html"))
    reply = await client.get(world.url("/api"))
    assert reply.url == world.url("/home")
    with pytest.raises(ItemError, match="INVALID_RESPONSE"):
        reply.json()


@pytest.mark.parametrize(
    ("status", "method", "body"),
    [
        (301, "GET", b""),
        (302, "GET", b""),
        (303, "GET", b""),
        (307, "POST", b"x"),
        (308, "POST", b"x"),
    ],
)
async def test_a_redirected_post_keeps_its_body_only_where_the_status_says_so(
    client: HttpClient, world: World, status: int, method: str, body: bytes
) -> None:
    world.on("/a", redirect("/b", status))
    world.on("/b", json_answer(1))
    await client.post(world.url("/a"), content=b"x", headers={"Content-Type": "text/x"})
    assert (world.requests[1].method, world.requests[1].body) == (method, body)
    assert ("content-type" in world.requests[1].headers) == bool(body)


async def test_secrets_stay_with_the_origin_they_were_meant_for(
    client: HttpClient, world: World
) -> None:
    async with World() as other:
        world.on("/a", redirect("/b"))
        world.on("/b", redirect(other.url("/c")))
        other.on("/c", json_answer(1))
        secrets = {"Authorization": "Bearer s", "Cookie": "s=1", "X-API-Key": "s"}
        await client.get(world.url("/a"), headers={**secrets, "Accept": "text/x"})
        assert world.requests[1].headers["authorization"] == "Bearer s"
        sent = other.requests[0].headers
        assert not {"authorization", "cookie", "x-api-key"} & set(sent)
        assert sent["accept"] == "text/x"


@pytest.mark.parametrize("target", ["/loop", "/elsewhere"])
async def test_a_redirect_loop_is_an_error(client: HttpClient, world: World, target: str) -> None:
    world.on("/loop", redirect(target))
    world.on("/elsewhere", redirect("/loop"))
    error = await failure(client.get(world.url("/loop")))
    assert error.code == "INVALID_RESPONSE"
    assert "loop" in error.message
    assert len(world.requests) <= 2


async def test_endless_redirects_are_an_error(client: HttpClient, world: World) -> None:
    for number in range(20):
        world.on(f"/{number}", redirect(f"/{number + 1}"))
    error = await failure(client.get(world.url("/0")))
    assert error.code == "INVALID_RESPONSE"
    assert len(world.requests) == OPEN.max_redirects + 1


async def test_a_redirect_off_the_host_is_refused_where_asked(
    client: HttpClient, world: World
) -> None:
    async with World() as other:
        world.on("/a", redirect(other.url("/b")))
        error = await failure(client.get(world.url("/a"), follow_off_host=False))
        assert error.code == "INVALID_RESPONSE"
        assert "another host" in error.message
        assert not other.requests


@pytest.mark.parametrize(
    "target", ["ftp://x.example/", "file:///etc/passwd", "http://a:b@x.example/", "http://["]
)
async def test_a_redirect_to_what_is_not_a_web_address_is_refused(
    client: HttpClient, world: World, target: str
) -> None:
    world.on("/a", redirect(target))
    assert (await failure(client.get(world.url("/a")))).code == "INVALID_URL"


# URLs


@pytest.mark.parametrize(
    "url",
    [
        "",
        "x.example/no-scheme",
        "/relative",
        "ftp://x.example/",
        "javascript:alert(1)",
        "http://",
        "http://x.example:99999/",
        "http://x.example:0/",
        "http://x%2eexample/",
        "http://x.example\\@y.example/",
        "http://[::1/",
        "http://user:secret@x.example/",
        "http://x\n.example/",
        None,
    ],
)
async def test_what_is_not_a_web_address_is_an_invalid_url(client: HttpClient, url: Any) -> None:
    error = await failure(client.get(url))
    assert error.code == "INVALID_URL"
    assert "secret" not in error.message


async def test_a_header_that_cannot_be_sent_fails_only_its_item(
    client: HttpClient, world: World
) -> None:
    error = await failure(client.get(world.url("/"), headers={"X-Own": "a\r\nX-Evil: 1"}))
    assert error.code == "INVALID_URL"
    assert not world.requests


async def test_fragments_are_not_sent(client: HttpClient, world: World) -> None:
    world.on("/x", json_answer(1))
    reply = await client.get(world.url("/x#part"))
    assert reply.url == world.url("/x")
