"""The pages and routes of linker, served for real, with a worker and a local Wikidata beside them.

with LinkerSite(url, folder, world) as linker:
    ann = linker.person("ann")
    project = linker.project(ann, rows)
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx2

from holdfast_linker.options import LinkerOptions
from holdfast_linker.pipeline import Linker
from holdfast_linker.web import PACK
from pipelines.linker.tests.entity_world import EntityWorld
from pipelines.linker.tests.labelled import MAPPING
from pipelines.linker.tests.wikidata_server import WikidataServer
from tests.web.site import Site

Client = httpx2.Client
_PATIENCE_SECONDS = 60.0


class LinkerSite:
    def __init__(self, database_url: str, folder: Path, world: EntityWorld) -> None:
        self.wikidata = WikidataServer(world)
        self._pipelines: dict[str, Any] = {}
        self.site = Site(database_url, folder, packs=[PACK], pipelines=self._pipelines)
        self._clients: list[Client] = []

    def __enter__(self) -> Self:
        self.site._thread.start()
        self.site.run(self.wikidata.__aenter__())
        options = LinkerOptions(
            wikidata_url=self.wikidata.url,
            spacing_seconds=0.0,
            batch_wait_seconds=0.005,
            concurrency=20,
            contact="tests@holdfast.invalid",
        )
        pipeline = Linker(options)
        pipeline.extension = "linker"
        self._pipelines["linker"] = pipeline
        self.site.run(self.site._start())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for client in self._clients:
            client.close()
        self.site.run(self.site._stop())
        self.site.run(self.wikidata.__aexit__(kind, error, trace))
        self.site._loop.call_soon_threadsafe(self.site._loop.stop)
        self.site._thread.join()
        self.site._loop.close()

    def person(self, name: str, role: str = "operator") -> Client:
        """An account, and a client with its token."""
        accounts = self.site.parts.accounts
        self.site.run(accounts.add_user(name, role, None, "tester"))
        token = self.site.run(accounts.make_token(name, "test", None, "tester"))
        client = Client(
            base_url=self.site.url, timeout=30, headers={"Authorization": f"Bearer {token.value}"}
        )
        self._clients.append(client)
        return client

    def anybody(self) -> Client:
        client = Client(base_url=self.site.url, timeout=30)
        self._clients.append(client)
        return client

    def dataset(self, client: Client, project_id: int, rows: Sequence[dict[str, str]]) -> Any:
        text = "".join(json.dumps(row) + "\n" for row in rows)
        added = client.post(
            f"/api/projects/{project_id}/datasets",
            data={"mapping": json.dumps(_mapping(rows))},
            files={"file": ("people.jsonl", text.encode())},
        )
        assert added.status_code == 201, added.text
        return added.json()

    def project(self, client: Client, rows: Sequence[dict[str, str]], name: str = "people") -> Any:
        """A project whose entries are all matched."""
        made = client.post("/api/projects", json={"name": name})
        assert made.status_code == 201, made.text
        project_id = made.json()["id"]
        self.dataset(client, project_id, rows)
        started = client.post(f"/api/projects/{project_id}/match")
        assert started.status_code == 202 and len(started.json()["jobs"]) == 1, started.text
        return self.until(client, project_id, lambda p: p["state"] != "processing")

    def finished(self, client: Client, operation_id: int) -> Any:
        """An operation that has ended."""
        path = f"/api/operations/{operation_id}"
        self.eventually(lambda: client.get(path).json()["state"] == "DONE")
        return client.get(path).json()

    def eventually(self, met: Callable[[], bool]) -> None:
        ends = time.monotonic() + _PATIENCE_SECONDS
        while not met():
            assert time.monotonic() < ends, "it did not happen"
            time.sleep(0.05)

    def until(self, client: Client, project_id: int, met: Callable[[Any], bool]) -> Any:
        ends = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < ends:
            project = client.get(f"/api/projects/{project_id}").json()
            if met(project):
                return project
            time.sleep(0.05)
        raise AssertionError(project)


def _mapping(rows: Sequence[dict[str, str]]) -> dict[str, Any]:
    """Of the columns that the rows have."""
    columns = {column for row in rows for column in row}
    whole = MAPPING.to_json() | {"id": "id"}
    whole["properties"] |= {column: column for column in columns if column.startswith("P")}
    return {
        role: {c: p for c, p in given.items() if c in columns}
        if isinstance(given, dict)
        else [c for c in given if c in columns]
        if isinstance(given, list)
        else given
        for role, given in whole.items()
        if not isinstance(given, str) or given in columns
    }
