"""Connections that are used again, and those that must not be."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from holdfast.clock import SystemClock
from holdfast.errors import ItemError
from holdfast.http import HttpClient, HttpOptions
from tests.http_client import http_client
from tests.world import Answer, Raw, World, text_answer

OPEN = HttpOptions(obey_robots=False, allow_private_addresses=True)
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class HurriedClock(SystemClock):
    hurry = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.hurry


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with World() as world:
        world.on("/", text_answer("ok"))
        yield world


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    async with http_client(OPEN) as client:
        yield client


async def test_idle_connection_expires(world: World) -> None:
    clock = HurriedClock()
    async with http_client(OPEN, clock=clock) as client:
        for hurry in (0.0, 10.0, 30.0):
            clock.hurry = hurry
            await client.get(world.url())
    assert world.connections == 2


async def test_bytes_after_a_reply_are_not_taken_for_the_next(
    client: HttpClient, world: World
) -> None:
    world.on("/two", Raw([WHOLE + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", 30.0]))
    assert (await client.get(world.url("/two"))).text == "ok"
    assert (await client.get(world.url())).text == "ok"
    assert world.connections == 2


async def test_connection_that_the_server_closed_is_not_used_again(
    client: HttpClient, world: World
) -> None:
    world.on("/last", Raw([WHOLE]))  # closes without saying so
    for _ in range(3):
        assert (await client.get(world.url("/last"))).text == "ok"
    assert world.connections == 3


async def test_refused_body_closes_its_connection(client: HttpClient, world: World) -> None:
    world.on("/large", Answer(200, b"x" * 100_000, {}))
    with pytest.raises(ItemError, match="TOO_LARGE"):
        await client.get(world.url("/large"), max_bytes=10)
    assert (await client.get(world.url())).text == "ok"
    assert world.connections == 2


async def test_idle_connections_of_other_hosts_give_way(world: World) -> None:
    async with http_client(replace(OPEN, max_connections=1)) as client:
        for host in ("127.0.0.1", "127.0.0.2", "127.0.0.1"):
            async with World(address="127.0.0.2") as other:
                other.on("/", text_answer("other"))
                target = world if host == "127.0.0.1" else other
                await client.get(target.url(host=host))
    assert world.connections == 2
