"""The OpenAPI document against the server: whatever fits it or not, no server error."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode, checks

from tests.api.server import ApiServer, finished

#: Never ends: what is looked at is how it begins.
ENDLESS = "GET /api/events"
#: Tried by somebody who may be shut out by them.
SHUT_OUT = {"PUT /api/session/password", "DELETE /api/tokens/{token_id}", "DELETE /api/session"}
CHECKS = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
QUICK = settings(
    max_examples=8,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


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
        async with ApiServer(self._url, self._folder, kickoff_max_seconds="0.1") as server:
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
@pytest.mark.parametrize("mode", list(GenerationMode))
def test_fuzzed_requests_meet_no_server_error(running: Running, mode: GenerationMode) -> None:
    schema = schemathesis.openapi.from_url(f"{running.address}/api/openapi.json")
    tried = [
        operation.label
        for operation in (found.ok() for found in schema.get_all_operations())
        if _try(operation, mode, running)
    ]
    assert len(tried) > (40 if mode is GenerationMode.POSITIVE else 20), tried


def _try(operation: Any, mode: GenerationMode, running: Running) -> bool:
    """Whether there was anything to try: some routes take nothing, or nothing that is wrong."""

    @QUICK
    @given(operation.as_strategy(generation_mode=mode))
    def tried(case: Any) -> None:
        token = running.spare if operation.label in SHUT_OUT else running.token
        headers = {"Authorization": f"Bearer {token}"}
        if operation.label == ENDLESS:
            _begin(case, running.address, headers)
            return
        reply = case.call(base_url=running.address, headers=headers, timeout=30)
        # A flag that the fuzzing itself switched off is told as 503.
        assert reply.status_code < 500 or reply.status_code == 503, (operation.label, reply.text)
        case.validate_response(reply, checks=CHECKS)

    try:
        tried()
    except Unsatisfiable:
        return False
    return True


def _begin(case: Any, address: str, headers: dict[str, str]) -> None:
    asked = case.as_transport_kwargs(base_url=address, headers=headers)
    with requests.request(**asked, stream=True, timeout=30) as reply:
        if reply.status_code == 200:
            assert reply.headers["content-type"].startswith("text/event-stream")
        else:
            case.validate_response(reply, checks=CHECKS)
