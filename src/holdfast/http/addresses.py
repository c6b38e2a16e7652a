"""Decides which addresses may be contacted, and provides a network that connects to no other.

The name is resolved, its addresses are checked, and the connection is made to an address that was
checked. A second look-up, which could answer differently, never happens; TLS and the Host header
still use the name.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable

from holdfast.errors import ItemError
from holdfast.http.streams import Network, TcpNetwork, TcpStream

Resolve = Callable[[str, int], Awaitable[list[str]]]

_GLOBAL_UNICAST_6 = ipaddress.ip_network("2000::/3")
# Python counts these as global, or did in one of its versions: relays and tunnels that lead to an
# IPv4 address of the sender's choice, and blocks set aside later.
_REFUSED = tuple(
    ipaddress.ip_network(network)
    for network in ("192.88.99.0/24", "192.0.0.0/24", "2001::/23", "2002::/16", "3fff::/20")
)
_MOST_ADDRESSES = 4
#: Where clouds give every machine its credentials. No source of records is there, so they stay
#: refused when private addresses are allowed. A name such as metadata.google.internal leads to one
#: of them.
METADATA_ADDRESSES = frozenset(
    ipaddress.ip_address(address)
    for address in (
        "169.254.169.254",  # AWS, Azure, Google, Oracle, DigitalOcean, Hetzner, OpenStack, IBM …
        "fd00:ec2::254",  # AWS, by IPv6
        "169.254.170.2",  # AWS, credentials of a container
        "169.254.170.23",  # AWS, identity of a pod
        "fd00:ec2::23",  # AWS, identity of a pod, by IPv6
        "fd20:ce::254",  # Google, by IPv6
        "fe80::a9fe:a9fe",  # OpenStack, by IPv6
        "168.63.129.16",  # Azure's host: counts as public everywhere else
        "100.100.100.200",  # Alibaba
        "192.0.0.192",  # Oracle, older machines
        "169.254.0.23",  # Tencent
        "169.254.42.42",  # Scaleway
        "fd00:42::42",  # Scaleway, by IPv6
    )
)
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """Whether the address belongs to the open Internet.

    IPv6 counts only within global unicast, which leaves out IPv4-mapped and NAT64 addresses,
    loopback, link-local, unique-local and multicast.
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    if parsed.version == 6 and parsed not in _GLOBAL_UNICAST_6:
        return False
    if parsed.is_multicast or parsed.is_reserved or not parsed.is_global:
        return False
    if parsed in METADATA_ADDRESSES:
        return False
    return not any(parsed in network for network in _REFUSED if network.version == parsed.version)


def is_metadata(address: str) -> bool:
    """Whether a cloud's metadata service is at the address, in any notation."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(parsed, ipaddress.IPv6Address):
        inner = parsed.ipv4_mapped or parsed.sixtofour
        if parsed in _NAT64:
            inner = ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF)
        return parsed in METADATA_ADDRESSES or inner in METADATA_ADDRESSES
    return parsed in METADATA_ADDRESSES


async def resolve(host: str, port: int) -> list[str]:
    """Returns the host's addresses in the order in which the system would try them."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class CheckedNetwork:
    """Connects to public addresses only, unless private ones are allowed."""

    def __init__(
        self,
        *,
        allow_private: bool,
        resolve: Resolve = resolve,
        network: Network | None = None,
    ) -> None:
        self._allow_private = allow_private
        self._resolve = resolve
        self._network = network or TcpNetwork()

    async def connect(self, host: str, port: int, seconds: float) -> TcpStream:
        try:
            async with asyncio.timeout(seconds):
                addresses = self._allowed(host, await self._addresses(host, port))
                return await self._connect_any(host, addresses, port, seconds / len(addresses))
        except TimeoutError as error:
            raise ItemError("TIMEOUT", f"{host}: no connection within {seconds} s") from error

    async def _addresses(self, host: str, port: int) -> list[str]:
        if _is_address(host):
            return [host]
        try:
            return await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise ItemError("DNS_ERROR", f"{host}: the name has no address ({error})") from error

    def _allowed(self, host: str, addresses: list[str]) -> list[str]:
        if any(is_metadata(address) for address in addresses):
            detail = f"{host} is at the metadata service of a cloud, which is never asked"
            raise ItemError("PRIVATE_ADDRESS", detail)
        if self._allow_private:
            allowed = addresses
        else:
            allowed = [address for address in addresses if is_public(address)]
        if addresses and not allowed:
            raise ItemError(
                "PRIVATE_ADDRESS",
                # Does not say which one: it may be a secret of the internal network.
                f"{host} is not at a public address; "
                "set HOLDFAST_ALLOW_PRIVATE_ADDRESSES=true if you want to reach it",
            )
        if not allowed:
            raise ItemError("DNS_ERROR", f"{host}: the name has no address")
        return allowed[:_MOST_ADDRESSES]

    async def _connect_any(
        self, host: str, addresses: list[str], port: int, seconds: float
    ) -> TcpStream:
        failures: list[OSError] = []
        for address in addresses:
            try:
                return await self._network.connect(address, port, seconds)
            except OSError as error:
                failures.append(error)
        raise _failure(host, port, failures[-1]) from failures[-1]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _failure(host: str, port: int, error: OSError) -> ItemError:
    if isinstance(error, TimeoutError):
        return ItemError("TIMEOUT", f"{host}:{port} does not answer")
    if isinstance(error, ConnectionRefusedError):
        return ItemError("CONNECTION_REFUSED", f"{host}:{port} refuses connections")
    return ItemError("NETWORK_ERROR", f"{host}:{port} cannot be reached ({error})")
