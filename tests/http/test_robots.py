"""robots.txt is fetched once, understood as RFC 9309 has it, and obeyed."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from holdfast.clock import FixedClock
from holdfast.errors import GateWait, ItemError
from holdfast.http import HttpClient, HttpOptions
from tests.http_client import RecordingGates, http_client
from tests.world import Answer, Raw, World, json_answer, redirect, text_answer

POLITE = HttpOptions(
    user_agent="Holdfast/1 (test@example.com)", timeout_seconds=10, allow_private_addresses=True
)
DAY = 24 * 3600


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with World() as world:
        world.on("/open", json_answer(1))
        world.on("/private/x", json_answer(1))
        yield world


@pytest.fixture
def gates() -> RecordingGates:
    return RecordingGates()


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
async def client(gates: RecordingGates, clock: FixedClock) -> AsyncIterator[HttpClient]:
    async with http_client(POLITE, gates, clock) as client:
        yield client


async def code_of(client: HttpClient, url: str, **options: bool) -> str | None:
    try:
        await client.get(url, **options)
    except ItemError as error:
        return error.code
    return None


async def test_a_disallowed_path_is_not_asked_for(client: HttpClient, world: World) -> None:
    world.on("/robots.txt", text_answer("User-agent: *\nDisallow: /private/"))
    assert await code_of(client, world.url("/private/x")) == "ROBOTS_DISALLOWED"
    assert await code_of(client, world.url("/open")) is None
    assert [request.path for request in world.requests] == ["/robots.txt", "/open"]


@pytest.mark.parametrize(
    ("rules", "path", "code"),
    [
        (
            "User-agent: holdfast\nDisallow: /\n\nUser-agent: *\nDisallow:",
            "/open",
            "ROBOTS_DISALLOWED",
        ),
        ("User-agent: holdfast\nAllow: /\n\nUser-agent: *\nDisallow: /", "/open", None),
        ("User-agent: otherbot\nDisallow: /", "/open", None),
        ("User-agent: *\nDisallow: /private\nAllow: /private/x", "/private/x", None),
        ("User-agent: *\nAllow: /open\nDisallow: /open", "/open", None),
        ("User-agent: *\nDisallow: /*?q=", "/open?q=1", "ROBOTS_DISALLOWED"),
        ("User-agent: *\nDisallow: /open$", "/open?q=1", None),
        ("\ufeffUser-agent: *\nDisallow: /", "/open", "ROBOTS_DISALLOWED"),
        ("<html>a page for everything</html>", "/open", None),
        ("", "/open", None),
    ],
)
async def test_the_rules_are_understood(
    client: HttpClient, world: World, rules: str, path: str, code: str | None
) -> None:
    world.on("/robots.txt", text_answer(rules))
    assert await code_of(client, world.url(path)) == code


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
async def test_a_missing_file_allows_everything(
    client: HttpClient, world: World, status: int
) -> None:
    world.on("/robots.txt", Answer(status))
    assert await code_of(client, world.url("/open")) is None


@pytest.mark.parametrize(
    "trouble", [Answer(500), Answer(503), Raw([b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nUs"])]
)
async def test_a_file_that_cannot_be_had_allows_nothing_for_a_minute(
    client: HttpClient, clock: FixedClock, world: World, trouble: Answer | Raw
) -> None:
    world.on("/robots.txt", trouble)
    for _ in range(3):
        assert await code_of(client, world.url("/open")) == "CONTENT_UNAVAILABLE"
    assert len(world.requests) == 1
    world.on("/robots.txt", Answer(404))
    clock.advance(61)
    assert await code_of(client, world.url("/open")) is None


async def test_the_file_is_kept_for_a_day(
    client: HttpClient, clock: FixedClock, world: World
) -> None:
    world.on("/robots.txt", text_answer("User-agent: *\nDisallow:"))
    await client.get(world.url("/open"))
    clock.advance(DAY - 1)
    await client.get(world.url("/open"))
    assert len(world.asked("/robots.txt")) == 1
    clock.advance(1)
    await client.get(world.url("/open"))
    assert len(world.asked("/robots.txt")) == 2


async def test_concurrent_first_requests_fetch_it_once(client: HttpClient, world: World) -> None:
    world.on("/robots.txt", text_answer("User-agent: *\nDisallow:"))
    await asyncio.gather(*(client.get(world.url("/open")) for _ in range(20)))
    assert len(world.asked("/robots.txt")) == 1


async def test_each_origin_has_its_own_file(client: HttpClient, world: World) -> None:
    world.on("/robots.txt", text_answer("User-agent: *\nDisallow: /"))
    async with World() as other:
        other.on("/open", json_answer(1))
        assert await code_of(client, world.url("/open")) == "ROBOTS_DISALLOWED"
        assert await code_of(client, other.url("/open")) is None


async def test_the_target_of_a_redirect_is_asked_about_too(
    client: HttpClient, world: World
) -> None:
    world.on("/robots.txt", text_answer("User-agent: *\nDisallow: /private/"))
    world.on("/open", redirect("/private/x"))
    assert await code_of(client, world.url("/open")) == "ROBOTS_DISALLOWED"
    assert not world.asked("/private/x")


async def test_the_file_itself_may_be_redirected_five_times(
    client: HttpClient, world: World
) -> None:
    world.on("/robots.txt", redirect("/r1"))
    for number in range(1, 5):
        world.on(f"/r{number}", redirect(f"/r{number + 1}"))
    world.on("/r5", text_answer("User-agent: *\nDisallow: /"))
    assert await code_of(client, world.url("/open")) == "ROBOTS_DISALLOWED"


async def test_a_file_that_redirects_forever_is_as_good_as_none(
    client: HttpClient, world: World
) -> None:
    world.on("/robots.txt", redirect("/robots.txt"))
    assert await code_of(client, world.url("/open")) is None


@pytest.mark.parametrize("coding", ["identity", "gzip"])
async def test_of_a_huge_file_the_beginning_counts(
    client: HttpClient, world: World, coding: str
) -> None:
    text = b"User-agent: *\nDisallow: /open\n" + b"# padding\n" * 1_000_000
    body = gzip.compress(text) if coding == "gzip" else text
    world.on("/robots.txt", Answer(body=body, headers={"Content-Encoding": coding}))
    assert await code_of(client, world.url("/open")) == "ROBOTS_DISALLOWED"


@pytest.mark.parametrize(("asked", "kept"), [("7.5", 7.5), ("86400", 60.0)])
async def test_a_crawl_delay_slows_the_gate_down_within_bounds(
    client: HttpClient, gates: RecordingGates, world: World, asked: str, kept: float
) -> None:
    world.on("/robots.txt", text_answer(f"User-agent: *\nCrawl-delay: {asked}"))
    await client.get(world.url("/open"))
    assert gates.spacings == {f"127.0.0.1:{world.port}": kept}


async def test_the_file_passes_the_gate_of_its_host(
    client: HttpClient, gates: RecordingGates, world: World
) -> None:
    await client.get(world.url("/open"))
    assert gates.passed == [f"127.0.0.1:{world.port}"] * 2


async def test_a_throttled_file_closes_the_gate(
    client: HttpClient, gates: RecordingGates, world: World
) -> None:
    world.on("/robots.txt", Answer(429, headers={"Retry-After": "8"}))
    assert await code_of(client, world.url("/open")) == "RATE_LIMITED"
    with pytest.raises(GateWait):
        await client.get(world.url("/open"))
    gates.closed.clear()
    world.on("/robots.txt", Answer(404))
    assert await code_of(client, world.url("/open")) is None


async def test_a_host_that_is_not_there_keeps_its_own_code(client: HttpClient) -> None:
    assert await code_of(client, "http://does-not-exist.invalid/") == "DNS_ERROR"


async def test_robots_can_be_left_aside_for_one_call_or_for_all(
    client: HttpClient, world: World
) -> None:
    world.on("/robots.txt", text_answer("User-agent: *\nDisallow: /"))
    assert await code_of(client, world.url("/open"), robots=False) is None
    async with http_client(replace(POLITE, obey_robots=False)) as careless:
        assert await code_of(careless, world.url("/open")) is None
        assert await code_of(careless, world.url("/open"), robots=True) == "ROBOTS_DISALLOWED"
