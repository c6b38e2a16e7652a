"""Requests made up from the OpenAPI document, those that fit it and those that do not."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode, checks

from holdfast.extension import installed
from holdfast.features.accounts.quotas import Amounts
from holdfast.kernel.database.migrate import upgrade
from holdfast.server.api_app import api_routers
from holdfast.server.site import page_routers
from tests.api.server import ApiServer, finished, upload
from tests.api.wild_requests import MARKERS, OWNERS, Findings, WildRequests

#: Never ends: what is looked at is how it begins.
ENDLESS = "GET /api/events"
#: The fuzzer is about other limits.
_ROOMY = Amounts(files=10**6, jobs=10**6, exports=10**6, tokens=10**6)
#: Sent as a user who may be locked out by them.
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


@dataclass(frozen=True)
class Fuzzed:
    """A server, a token of an admin, and one of a user who may be locked out."""

    address: str
    token: str
    spare: str

    def try_all(self, mode: GenerationMode, under: str = "/") -> list[str]:
        """The routes for which there was anything to try: some take nothing, or nothing that is
        wrong."""
        schema = schemathesis.openapi.from_url(
            f"{self.address}/api/openapi.json", headers={"Authorization": f"Bearer {self.token}"}
        )
        operations = [found.ok() for found in schema.get_all_operations()]
        return [
            each.label
            for each in operations
            if each.path.startswith(under) and self._try(each, mode)
        ]

    def _try(self, operation: Any, mode: GenerationMode) -> bool:
        @QUICK
        @given(operation.as_strategy(generation_mode=mode))
        def tried(case: Any) -> None:
            token = self.spare if operation.label in SHUT_OUT else self.token
            self._ask(case, operation.label, {"Authorization": f"Bearer {token}"})

        try:
            tried()
        except Unsatisfiable:
            return False
        return True

    def _ask(self, case: Any, label: str, headers: dict[str, str]) -> None:
        if label == ENDLESS:
            _begin(case, self.address, headers)
            return
        reply = case.call(base_url=self.address, headers=headers, timeout=30)
        # A flag that the fuzzing itself switched off gives a 503.
        assert reply.status_code < 500 or reply.status_code == 503, (label, reply.text)
        case.validate_response(reply, checks=CHECKS)


def _begin(case: Any, address: str, headers: dict[str, str]) -> None:
    asked = case.as_transport_kwargs(base_url=address, headers=headers)
    with requests.request(**asked, stream=True, timeout=30) as reply:
        if reply.status_code == 200:
            assert reply.headers["content-type"].startswith("text/event-stream")
        else:
            case.validate_response(reply, checks=CHECKS)


async def fuzzed(database_url: str, folder: Path, seed: int, number: int) -> Findings:
    """Fills a server with rows of two owners, then sends it requests at random."""
    packs = [extension.load("web") for extension in installed().values() if extension.web]
    async with ApiServer(database_url, folder, packs=packs, quotas=_ROOMY) as server:
        clients: dict[str | None, Any] = {None: server.anybody(follow_redirects=False)}
        roles = {"rita": "reader", "alice": "operator", "bob": "operator", "root": "admin"}
        for name, role in roles.items():
            clients[name] = await server.person(name, role)
        for name in OWNERS:
            await _fill(server, clients[name], MARKERS[name])
        routers = [*api_routers(), *page_routers()]
        for pack in packs:
            routers += [router for router in (pack.router, pack.api) if router is not None]
        routes = [
            (method, route.path_format)
            for router in routers
            for route in _routes(router)
            for method in sorted(route.methods)
        ]
        return await WildRequests(routes, clients, seed).send(number)


def _routes(router: Any) -> list[Any]:
    """Those of the routers that it includes too."""
    return [
        inner
        for route in router.routes
        for inner in (
            _routes(route.original_router) if hasattr(route, "original_router") else [route]
        )
    ]


async def _fill(server: ApiServer, client: Any, marker: str) -> None:
    """A finished job, an open one, an export, a file, a schedule's worth of errors."""
    job = await finished(server, client, marker, "missing")
    await upload(client, f"title\n{marker}\n", name=f"{marker}.csv")
    await client.post(
        "/api/files", files={"file": (f"{marker}.csv", f"title\n{marker}\n".encode())}
    )
    await client.post(f"/api/jobs/{job['id']}/export?format=csv")
    await client.post("/api/tokens", json={"name": marker})


def main() -> None:
    arguments = argparse.ArgumentParser(description="Send the API and the pages wild requests.")
    arguments.add_argument("--requests", type=int, default=50_000)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/holdfast.db"
        upgrade(url)
        findings = asyncio.run(fuzzed(url, Path(folder), given.seed, given.requests))
    print(findings)
    problems = [*findings.errors, *findings.leaks, *findings.slow]
    for problem in problems[:50]:
        print(problem)
    raise SystemExit(1 if problems else 0)


if __name__ == "__main__":
    main()
