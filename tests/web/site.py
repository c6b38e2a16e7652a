"""The pages, served for real in a thread of their own, with a worker beside them.

with Site(url, folder) as site:
    site.add_user("ada")
    job_id = site.finished_job("ada", rows)
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from collections import defaultdict
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import uvicorn

from holdfast.cli.api_parts import opened_parts
from holdfast.cli.composition import worker_options
from holdfast.configuration import load_settings
from holdfast.errors import Failed, NotFound
from holdfast.kernel import NewItem, NewJob, NewStream, Settlement
from holdfast.kernel.worker.presence import present
from holdfast.kernel.worker.worker import Worker
from holdfast.kernel.worker.worker_parts import WorkerParts
from holdfast.model import ItemStatus, Outcome
from holdfast.options import Option
from holdfast.pipeline import Pipeline, pipeline
from holdfast.server.api_app import create_app
from holdfast.server.dependencies import Parts
from holdfast.server.navigation import PagePack
from holdfast.server.site import add_pages
from tests.reading_files import reading_files
from tests.store.checks import ingest, lease_stream

T = TypeVar("T")
_PAGE = 5000


@pipeline(columns=["title", "length"], inputs=["title"])
async def lengths(row: dict[str, Any], ctx: Any) -> Any:
    """How long each title is; `missing` is not found, `broken` fails for good."""
    if row["title"] == "missing":
        raise NotFound
    if row["title"].startswith("broken"):
        raise Failed("PARSE_ERROR", "it is broken")
    return {"title": row["title"], "length": len(row["title"])}


@pipeline(
    columns=["text"],
    options=[
        Option("times", int, default=2, help="How often the title is said."),
        Option("between", choices=["-", "+"]),
        Option("loud", bool, default=False),
    ],
)
async def repeated(row: dict[str, Any], ctx: Any) -> Any:
    """The title, again and again."""
    text = ctx.options.get("between", " ").join([row["title"]] * ctx.options["times"])
    return {"text": text.upper() if ctx.options["loud"] else text}


@pipeline(columns=["name", "bytes"])
async def pictures(row: dict[str, Any], ctx: Any) -> Any:
    """How large each picture is, by its bytes."""
    async with ctx.file(row) as path:
        return {"name": path.name, "bytes": len(path.read_bytes())}


#: job -> how many more of its items may end
TURNS: defaultdict[int, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(0))


@pipeline(columns=["title"])
async def held(row: dict[str, Any], ctx: Any) -> Any:
    """Each item waits until the test lets it go."""
    await TURNS[ctx.job.id].acquire()
    return row


PIPELINES: dict[str, Pipeline] = {
    "lengths": lengths,
    "held": held,
    "repeated": repeated,
    "pictures": pictures,
}


class Site:
    def __init__(
        self,
        database_url: str,
        folder: Path,
        works: bool = True,
        packs: Sequence[PagePack] = (),
        pipelines: Mapping[str, Pipeline] = PIPELINES,
    ) -> None:
        self._environment = {
            "HOLDFAST_DATABASE_URL": database_url,
            "HOLDFAST_DATA_DIR": str(folder / ".holdfast"),
            "HOLDFAST_SWEEP_SECONDS": "0.5",
            "HOLDFAST_RETRY_BASE_SECONDS": "0",
            "HOLDFAST_MAX_ATTEMPTS_NOT_FOUND": "1",
            "HOLDFAST_ALLOW_PRIVATE_ADDRESSES": "true",
        }
        self._works = works
        self._packs = packs
        self._pipelines = pipelines
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._stack = contextlib.AsyncExitStack()
        self.parts: Parts
        self.url = ""

    def __enter__(self) -> Site:
        self._thread.start()
        self.run(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self.run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return future.result(60)

    async def _start(self) -> None:
        settings = load_settings(self._environment)
        self.parts = await self._stack.enter_async_context(opened_parts(settings, self._pipelines))
        app = create_app(self.parts)
        add_pages(app, self._packs)
        listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._feed = self.parts.feed
        self._serving = asyncio.create_task(self._server.serve(sockets=[listener]))
        while not self._server.started:
            await asyncio.sleep(0.01)
        reading = reading_files(settings, self.parts.store, self._pipelines)
        await self._stack.enter_async_context(reading)
        if self._works:
            parts = self.parts
            options = worker_options(settings, None, until_idle=False)
            worker = WorkerParts(
                parts.store, parts.new_name(), "tester", parts.clock, parts.rng, parts.metrics,
                parts.log,
            )  # fmt: skip
            self._worker = Worker(worker, self._pipelines, options)
            self._working = asyncio.create_task(self._worker.run())

    async def _stop(self) -> None:
        if self._works:
            self._worker.stop()
            await self._working
        self._feed.close()
        self._server.should_exit = True
        await self._serving
        await self._stack.aclose()

    def add_user(self, name: str, role: str = "operator", password: str | None = None) -> None:
        """Without a password, which takes a while to hash, they come in with a link."""
        self.run(self.parts.accounts.add_user(name, role, password, "tester"))

    def login_link(self, name: str) -> str:
        return f"{self.url}/login/{self.run(self.parts.accounts.make_link(name, 'tester'))}"

    def let_go(self, job_id: int, items: int) -> None:
        """Lets this many items of a `held` job end."""
        self.run(_let_go(job_id, items))

    def let_all_go(self) -> None:
        for job_id in list(TURNS):
            self.let_go(job_id, _PAGE)

    def job(
        self,
        owner: str,
        titles: Sequence[str],
        statuses: Sequence[ItemStatus] = (),
        pipeline: str = "lengths",
        name: str = "titles.csv",
    ) -> int:
        """A job over these titles; with statuses, a done one whose items ended so in turn."""
        return self.run(self._job(owner, titles, statuses, pipeline, name))

    async def _job(
        self,
        owner: str,
        titles: Sequence[str],
        statuses: Sequence[ItemStatus],
        pipeline: str,
        name: str,
    ) -> int:
        store = self.parts.store
        # A job that is to be settled here must not be processed by others.
        new = NewJob(
            pipeline=f"{pipeline}-by-hand" if statuses else pipeline,
            name=name,
            streams=[NewStream("titles-{job}", name)],
            owner_id=owner,
            columns=PIPELINES[pipeline].columns if pipeline in PIPELINES else (),
        )
        job_id = await store.jobs.create(new, owner)
        async with present(store, f"hand {job_id}") as hand:
            stream = await lease_stream(store, job_id, hand)
            for start in range(0, len(titles), _PAGE):
                part = titles[start : start + _PAGE]
                items = [NewItem(json.dumps({"title": title})) for title in part]
                end = start + _PAGE >= len(titles)
                await ingest(store, stream, items, worker=hand, end=end)
            while statuses and (claims := await store.leases.claim(job_id, hand, 5000, 1 << 24)):
                for claimed in claims:
                    outcomes = [_outcome(row, statuses) for row in claimed.rows]
                    settlement = Settlement(claimed.lease, outcomes, last=True)
                    await store.outcomes.settle(job_id, hand, [settlement])
        await store.outcomes.complete(job_id)
        return job_id


async def _let_go(job_id: int, items: int) -> None:
    for _ in range(items):
        TURNS[job_id].release()


def _outcome(row: Sequence[Any], statuses: Sequence[ItemStatus]) -> Outcome:
    seq, text = row[0], row[1]
    status = statuses[(seq - 1) % len(statuses)]
    title = json.loads(text)["title"]
    if status is ItemStatus.DONE:
        result = json.dumps({"title": title, "length": len(title)})
        return Outcome(seq, status, 1, 1, 0, None, result)
    code = "TIMEOUT" if seq % 2 else "PARSE_ERROR"
    told = (code, f"{code.lower()} at {title}") if status is ItemStatus.ERROR else (None, None)
    return Outcome(seq, status, 1, 1, 0, None, None, *told)
