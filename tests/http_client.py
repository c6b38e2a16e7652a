"""Clients for the tests: gates that remember, and a network on which public names exist."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from holdfast.clock import Clock, SystemClock
from holdfast.errors import GateWait
from holdfast.http import HttpClient, HttpOptions
from holdfast.http.addresses import CheckedNetwork
from holdfast.http.streams import Network, TcpNetwork, TcpStream
from holdfast.kernel.gates.gates import Passage


class RecordingGates:
    """Lets every request through and records it; a closed gate makes them wait."""

    def __init__(self) -> None:
        self.passed: list[str] = []
        self.in_flight = 0
        self.closed: dict[str, tuple[float, str]] = {}
        self.spacings: dict[str, float] = {}
        self.throttles = self.failures = 0

    @asynccontextmanager
    async def passing(self, name: str) -> AsyncIterator[Passage]:
        if name in self.closed:
            raise GateWait(name, *self.closed[name])
        self.passed.append(name)
        self.in_flight += 1
        passage = Passage()
        try:
            yield passage
        finally:
            self.in_flight -= 1
            self.throttles += passage.throttles
            self.failures += passage.failures

    async def close(self, name: str, seconds: float, reason: str) -> None:
        self.closed[name] = (seconds, reason)

    async def slow_down(self, name: str, spacing: float) -> None:
        self.spacings[name] = spacing


class PublicNames:
    """Names that resolve to public addresses, which all lead to one loopback port."""

    def __init__(self, port: int, names: dict[str, list[str]]) -> None:
        self._port = port
        self._names = names
        self._system = TcpNetwork()
        self.resolved: list[str] = []
        self.dialled: list[str] = []

    def checked(self) -> CheckedNetwork:
        return CheckedNetwork(allow_private=False, resolve=self.resolve, network=self)

    async def resolve(self, host: str, port: int) -> list[str]:
        self.resolved.append(host)
        if host not in self._names:
            raise OSError("Name or service not known")
        return self._names[host]

    async def connect(self, host: str, port: int, seconds: float) -> TcpStream:
        self.dialled.append(host)
        return await self._system.connect("127.0.0.1", self._port, seconds)


@asynccontextmanager
async def http_client(
    options: HttpOptions,
    gates: RecordingGates | None = None,
    clock: Clock | None = None,
    network: Network | None = None,
) -> AsyncIterator[HttpClient]:
    client = HttpClient(
        gates or RecordingGates(),
        options,
        clock or SystemClock(),
        random.Random(7),
        network=network,
    )
    try:
        yield client
    finally:
        client.close()
