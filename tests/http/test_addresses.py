"""Private addresses are refused, by whatever way one gets there."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.errors import ItemError
from holdfast.http import HttpOptions
from holdfast.http.addresses import METADATA_ADDRESSES, CheckedNetwork, is_public
from tests.http_client import PublicNames, http_client
from tests.world import World, json_answer, redirect

PUBLIC = "93.184.215.14"
CLOSED = HttpOptions(obey_robots=False, timeout_seconds=10)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with World() as world:
        yield world


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "93.184.215.14", "172.32.0.1", "2606:4700::1111", "2a00:1450:4001::1"]
)
def test_addresses_of_the_open_internet_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "100.64.0.1",
        "127.0.0.1",
        "127.255.255.254",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.8",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "64:ff9b::7f00:1",
        "64:ff9b::808:808",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::1",
        "3fff::1",
        "fc00::1",
        "fd12::1",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
        "no address",
    ],
)
def test_all_other_addresses_are_not(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "127.1", "0", "[::1]", "[::ffff:127.0.0.1]"],
)
async def test_a_private_address_is_refused_in_every_spelling(world: World, host: str) -> None:
    world.on("/", json_answer(1))
    async with http_client(CLOSED) as client:
        with pytest.raises(ItemError) as caught:
            await client.get(world.url("/", host))
    assert caught.value.code == "PRIVATE_ADDRESS"
    assert "HOLDFAST_ALLOW_PRIVATE_ADDRESSES" in caught.value.message
    assert "127.0.0.1" not in caught.value.message.replace(host.strip("[]"), "")
    assert world.connections == 0


async def test_private_addresses_are_asked_where_allowed(world: World) -> None:
    world.on("/", json_answer(1))
    async with http_client(HttpOptions(obey_robots=False, allow_private_addresses=True)) as client:
        assert (await client.get(world.url("/", "localhost"))).ok


async def test_the_address_that_was_checked_is_the_one_connected_to(world: World) -> None:
    network = PublicNames(world.port, {"shop.example": [PUBLIC]})
    world.on("/", json_answer(1))
    async with http_client(CLOSED, network=network.checked()) as client:
        await client.get("http://shop.example/")
        await client.get("http://shop.example/")
    assert network.resolved == ["shop.example"]
    assert network.dialled == [PUBLIC]
    assert world.requests[0].headers["host"] == "shop.example"


async def test_private_addresses_among_public_ones_are_passed_over(world: World) -> None:
    network = PublicNames(world.port, {"shop.example": ["10.0.0.1", "::1", PUBLIC]})
    world.on("/", json_answer(1))
    async with http_client(CLOSED, network=network.checked()) as client:
        await client.get("http://shop.example/")
    assert network.dialled == [PUBLIC]


async def test_a_redirect_to_a_private_address_is_refused(world: World) -> None:
    names = {"shop.example": [PUBLIC], "inside.example": ["192.168.1.1"]}
    network = PublicNames(world.port, names)
    world.on("/name", redirect("http://inside.example/"))
    world.on("/address", redirect("http://169.254.169.254/latest/meta-data"))
    async with http_client(CLOSED, network=network.checked()) as client:
        for path in ("/name", "/address"):
            with pytest.raises(ItemError, match="PRIVATE_ADDRESS"):
                await client.get(f"http://shop.example{path}")
    assert set(network.dialled) == {PUBLIC}


async def test_a_private_robots_txt_is_refused_as_such(world: World) -> None:
    async with http_client(HttpOptions()) as client:
        with pytest.raises(ItemError, match="PRIVATE_ADDRESS"):
            await client.get(world.url("/"))
    assert world.connections == 0


@pytest.fixture
async def secure_world() -> AsyncIterator[tuple[World, list[str | None]]]:
    asked_for: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Path(__file__).parent / "self_signed.pem")
    context.sni_callback = lambda _socket, name, _context: asked_for.append(name)
    async with World(tls=context) as world:
        yield world, asked_for


async def test_tls_asks_for_the_name_and_refuses_a_certificate_that_is_not_trusted(
    secure_world: tuple[World, list[str | None]],
) -> None:
    world, asked_for = secure_world
    network = PublicNames(world.port, {"shop.example": [PUBLIC]})
    async with http_client(CLOSED, network=network.checked()) as client:
        with pytest.raises(ItemError, match=r"NETWORK_ERROR.*certificate"):
            await client.get("https://shop.example/")
    assert asked_for == ["shop.example"]
    assert not world.requests


@pytest.mark.parametrize("allow_private", [True, False])
@pytest.mark.parametrize(
    "address",
    [
        *sorted(map(str, METADATA_ADDRESSES)),
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "fe80::a9fe:a9fe%eth0",
    ],
)
async def test_metadata_services_are_never_asked(address: str, allow_private: bool) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return [address]

    network = CheckedNetwork(allow_private=allow_private, resolve=resolve)
    assert not is_public(address)
    with pytest.raises(ItemError) as caught:
        await network.connect("metadata.google.internal", 80, 5)
    assert caught.value.code == "PRIVATE_ADDRESS"
    assert "metadata" in caught.value.message
