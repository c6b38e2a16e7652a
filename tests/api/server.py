"""Starts the API in the test's own loop, with a reader of the files that are sent to it, and gives
each person a client of their own.

async with ApiServer(url, folder) as server:
    ada = await server.person("ada")
    reply = await ada.get("/api/jobs")
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, cast

import httpx2
import uvicorn

from holdfast.cli.api_parts import opened_parts
from holdfast.cli.pipelines import load_all
from holdfast.cli.server import Server, page_packs
from holdfast.configuration import Settings, load_settings
from holdfast.errors import ItemError, NotFound
from holdfast.extension import installed
from holdfast.features.accounts.quotas import Amounts
from holdfast.model import Page, Record
from holdfast.options import Option
from holdfast.orders import Planned
from holdfast.pipeline import Pipeline, pipeline
from holdfast.server.api_app import create_app
from holdfast.server.connections import ConnectionLimits, Connections, GuardedConnection
from holdfast.server.dependencies import Parts
from holdfast.server.navigation import PagePack
from holdfast.server.site import add_pages
from tests.reading_files import reading_files

PASSWORD = "correct horse"


@pipeline(columns=["title", "length"])
async def lengths(row: dict[str, Any], ctx: Any) -> Any:
    """How long each title is; `missing` is not found, `broken` fails for good."""
    if row["title"] == "missing":
        raise NotFound
    if row["title"] == "broken":
        raise ValueError("it is broken")
    return {"title": row["title"], "length": len(row["title"])}


@pipeline(
    columns=["text"],
    options=[
        Option("times", int, default=2, help="How often the title is said."),
        Option("between", choices=["-", "+"]),
        Option("loud", bool),
    ],
)
async def repeated(row: dict[str, Any], ctx: Any) -> Any:
    """The title, again and again."""
    text = ctx.options.get("between", " ").join([row["title"]] * ctx.options["times"])
    return {"text": text.upper() if ctx.options.get("loud") else text}


@pipeline(columns=["name", "bytes"])
async def pictures(row: dict[str, Any], ctx: Any) -> Any:
    """How large each picture is, by its bytes."""
    async with ctx.file(row) as path:
        return {"name": path.name, "bytes": len(path.read_bytes())}


#: Sources of `Shelves` that cannot be read now.
BROKEN_SHELVES: set[str] = set()


class Shelves(Pipeline):
    """The books of two shelves."""

    name = "shelves"
    columns = ("book",)

    def sources(self, options: Mapping[str, Any]) -> Sequence[str]:
        return ("left", "right")

    async def discover(self, source: str, cursor: Any, ctx: Any) -> AsyncIterator[Page]:
        if source in BROKEN_SHELVES:
            raise ItemError("ACCESS_DENIED", "the shelf is locked")
        yield Page([Record({"book": f"{source} {number}"}) for number in range(3)], end=True)

    async def process(self, row: dict[str, Any], ctx: Any) -> Any:
        return row


class Regional(Pipeline):
    """The records of one region, which has to be named."""

    name = "regional"
    options = (Option("region", help="For example north.", required=True),)

    def sources(self, options: Mapping[str, Any]) -> Sequence[str]:
        return (options["region"],)

    async def discover(self, source: str, cursor: Any, ctx: Any) -> AsyncIterator[Page]:
        yield Page([Record({"region": source})], end=True)

    async def process(self, row: dict[str, Any], ctx: Any) -> Any:
        return row


class Undeclared(Regional):
    """The same, without a declaration of its option."""

    name = "undeclared"
    options = ()


class Planning(Regional):
    """Plans its own jobs."""

    name = "planning"

    async def plan(self, tx: Any, request: Any, streams: Any, now: Any) -> Any:
        return Planned()


PIPELINES: dict[str, Pipeline] = {
    "lengths": lengths,
    "repeated": repeated,
    "pictures": pictures,
    "shelves": Shelves(),
    "regional": Regional(),
    "undeclared": Undeclared(),
    "planning": Planning(),
}


class ApiServer:
    def __init__(
        self,
        database_url: str,
        folder: Path,
        packs: Sequence[PagePack] = (),
        references: Sequence[str] = (),
        quotas: Amounts | None = None,
        connections: ConnectionLimits | None = None,
        **settings: str,
    ) -> None:
        """`packs`: pages of extensions besides the core's, with their pipelines. `references`:
        pipelines as `holdfast api` takes them, with their pages, instead."""
        self.folder = folder
        self._packs = packs
        self._references = references
        self._quotas = quotas
        self._limits = connections or ConnectionLimits()
        self._environment = {
            "HOLDFAST_DATABASE_URL": database_url,
            "HOLDFAST_DATA_DIR": str(folder / ".holdfast"),
            "HOLDFAST_SWEEP_SECONDS": "0.2",
            "HOLDFAST_RETRY_BASE_SECONDS": "0",
            **{f"HOLDFAST_{name.upper()}": value for name, value in settings.items()},
        }
        self._stack = AsyncExitStack()
        self.parts: Parts
        self.url = ""

    @property
    def environment(self) -> dict[str, str]:
        """Its settings, for another process beside it."""
        return dict(self._environment)

    async def __aenter__(self) -> ApiServer:
        settings = load_settings(self._environment)
        if self._quotas is not None:
            settings = replace(settings, quotas=self._quotas)
        pipelines = self._pipelines(settings)
        self.parts = await self._stack.enter_async_context(opened_parts(settings, pipelines))
        self.app = create_app(self.parts)
        add_pages(self.app, self._packs or page_packs(pipelines))
        await self._stack.enter_async_context(
            reading_files(settings, self.parts.store, pipelines, lambda: self.parts.library.access)
        )
        listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        connections = Connections(self._limits, self.parts.clock, self.parts.log)
        config = uvicorn.Config(
            self.app,
            http=cast("type[asyncio.Protocol]", partial(GuardedConnection, connections)),
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=1,
        )
        self._server = Server(self.parts.feed, config, connections)
        self._server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
        self._serving = asyncio.create_task(self._server.serve(sockets=[listener]))
        self._stack.callback(listener.close)
        async with httpx2.AsyncClient(base_url=self.url) as client:
            while not self._server.started:
                await asyncio.sleep(0.01)
            assert (await client.get("/healthz")).status_code == 200
        return self

    def _pipelines(self, settings: Settings) -> Mapping[str, Pipeline]:
        if self._references:
            return load_all(self._references, settings)
        extensions = installed()
        return {**PIPELINES, **{pack.name: extensions[pack.name].make() for pack in self._packs}}

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.should_exit = True
        await self._serving
        await self._stack.aclose()

    def anybody(self, **options: Any) -> httpx2.AsyncClient:
        """A client that is not logged in; closed with the server."""
        client = httpx2.AsyncClient(base_url=self.url, timeout=30, **options)
        self._stack.push_async_callback(client.aclose)
        return client

    async def person(self, name: str, role: str = "operator") -> httpx2.AsyncClient:
        """An account, and a client with its token."""
        await self.parts.accounts.add_user(name, role, None, "tester")
        token = await self.parts.accounts.make_token(name, "test", None, "tester")
        return self.anybody(headers={"Authorization": f"Bearer {token.value}"})

    async def signed_in(self, name: str, role: str = "operator") -> httpx2.AsyncClient:
        """An account, and a client with a session, as a browser has."""
        await self.parts.accounts.add_user(name, role, None, "tester")
        client = self.anybody()
        link = await self.parts.accounts.make_link(name, "tester")
        reply = await client.post("/api/session/link", json={"token": link})
        client.headers["X-CSRF-Token"] = reply.json()["csrfToken"]
        return client

    async def stored(self, prefix: str) -> list[str]:
        """The keys in the file store."""
        return [info.key async for info in self.parts.library.access.store.list(prefix)]

    async def work(self, job_id: int) -> None:
        """A worker's run until nothing of the job is left to do."""
        await self.parts.kickoffs.new_worker(job_id).run()


async def upload(
    client: httpx2.AsyncClient, text: str, name: str = "rows.csv", **fields: Any
) -> httpx2.Response:
    form = {"pipeline": "lengths", **fields}
    data = {k: v if isinstance(v, str) else json.dumps(v) for k, v in form.items()}
    return await client.post("/api/jobs", files={"file": (name, text.encode())}, data=data)


async def finished(server: ApiServer, client: httpx2.AsyncClient, *titles: str) -> dict[str, Any]:
    """A job over these titles, worked off."""
    made = await upload(client, "title\n" + "".join(f"{title}\n" for title in titles))
    assert made.status_code == 202, made.text
    return await ended(server, client, made.json()["id"])


async def ended(server: ApiServer, client: httpx2.AsyncClient, job_id: int) -> dict[str, Any]:
    await taken_in(client, job_id)
    await server.work(job_id)
    job: dict[str, Any] = (await client.get(f"/api/jobs/{job_id}")).json()
    assert job["state"] == "DONE", job
    return job


async def taken_in(client: httpx2.AsyncClient, job_id: int) -> dict[str, Any]:
    while True:
        job: dict[str, Any] = (await client.get(f"/api/jobs/{job_id}")).json()
        if job["discoveredAt"] or job["state"] != "RUNNING":
            return job
        await asyncio.sleep(0.05)
