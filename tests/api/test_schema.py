"""The OpenAPI document against the server: whatever fits it or not, no server error."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from schemathesis import GenerationMode

from tests.api.fuzzing import Fuzzed
from tests.api.server import ApiServer, finished


class Running:
    """The server in a loop of its own, for clients that are not asynchronous."""

    def __init__(self, url: str, folder: Path) -> None:
        self._ready = threading.Event()
        self._url, self._folder = url, folder
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self.address = self.token = self.spare = ""

    def __enter__(self) -> Running:
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with ApiServer(self._url, self._folder) as server:
            accounts = server.parts.accounts
            await accounts.add_user("root", "admin", None, "tester")
            await accounts.add_user("eve", "operator", None, "tester")
            made = await accounts.make_token("root", "test", None, "tester")
            self.spare = (await accounts.make_token("eve", "test", None, "tester")).value
            await finished(server, await server.person("ada"), "chair", "broken", "missing")
            self.address, self.token = server.url, made.value
            self._ready.set()
            await self._stop.wait()


@pytest.fixture
def running(database_url: str, tmp_path: Path) -> Iterator[Running]:
    with Running(database_url, tmp_path) as started:
        yield started


@pytest.mark.slow
@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("mode", list(GenerationMode))
def test_fuzzed_requests_meet_no_server_error(running: Running, mode: GenerationMode) -> None:
    fuzzed = Fuzzed(running.address, running.token, running.spare)
    tried = fuzzed.try_all(mode)
    assert len(tried) > (40 if mode is GenerationMode.POSITIVE else 20), tried
