"""Provides what the items of one job may use besides HTTP and gates: reads of their own tables,
loaders, the cache and files."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import orjson

from holdfast.errors import DatabaseGone, GateWait, ItemError, PipelineError
from holdfast.files import FileAccess
from holdfast.flags import FlagValue
from holdfast.kernel import Store
from holdfast.kernel.database.driver import Conflict
from holdfast.kernel.worker.loading import Batches
from holdfast.kernel.worker.own_files import BlockingFiles, OwnFiles, image_copy
from holdfast.kernel.worker.threads import blocking_context
from holdfast.model import Job
from holdfast.pipeline import Context, Facilities, Http, OpenGate, Pipeline, Row
from holdfast.stored_files import PipelineFiles

T = TypeVar("T")
_DATABASE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class FacilityParts:
    """What all jobs of one worker share."""

    store: Store
    http: Http
    gates: OpenGate
    flag: Callable[[str], Awaitable[FlagValue]]
    files: FileAccess
    timeout_seconds: float
    max_value_bytes: int
    log: Any


class JobFacilities:
    def __init__(self, parts: FacilityParts, pipeline: Pipeline, job: Job) -> None:
        self._parts = parts
        self._driver = parts.store.database.driver
        self._pipeline = pipeline
        self._job = job
        self._batches: dict[str, Batches] = {}
        self.cache = PipelineCache(parts, pipeline.name)
        self.files: PipelineFiles = OwnFiles(parts.files, pipeline.name)

    async def read(self, query: str, params: Mapping[str, Any] | None = None) -> list[Row]:
        """Runs a named query of the pipeline's extension, or SQL."""
        self._check(query)

        async def read() -> list[Row]:
            async with self._driver.reading() as tx:
                return await tx.fetch(query, params)

        return await _or_wait(read())

    def _check(self, query: str) -> None:
        """Refuses the names of other extensions' queries. SQL has spaces; names have none."""
        if any(character.isspace() for character in query):
            return
        extension = self._pipeline.extension
        own = extension is not None and query.startswith(f"{extension}_")
        if not own or query not in self._driver.queries:
            raise PipelineError(
                f"the pipeline {self._pipeline.name} has no query {query!r}",
                "ctx.read takes SQL, or the name of a query in the extension's sql folder.",
            )

    async def load(self, name: str, key: str) -> Any:
        batches = self._batches.get(name)
        if batches is None:
            batches = self._batches[name] = self._make_batches(name)
        if not isinstance(key, str):
            raise PipelineError(f"a key of the loader {name} is text, not {type(key).__name__}")
        return await batches.load(key)

    async def flag(self, name: str) -> FlagValue:
        return await self._parts.flag(name)

    def file(self, row: Mapping[str, Any]) -> AbstractAsyncContextManager[Path]:
        return image_copy(self._parts.files, self._job, row)

    def _make_batches(self, name: str) -> Batches:
        pipeline, parts = self._pipeline, self._parts
        if name not in pipeline.loaders:
            known = ", ".join(sorted(pipeline.loaders)) or "none"
            raise PipelineError(
                f"the pipeline {pipeline.name} has no loader {name!r}", f"Loaders: {known}."
            )
        prefix = f"{pipeline.name}."
        scope = name if name.startswith(prefix) else prefix + name
        timeout = pipeline.timeout or parts.timeout_seconds
        # As in discovery: a batch belongs to the job, not to one of its items.
        ctx = Context(self._job, 0, 1, parts.http, parts.gates, parts.log, self)
        return Batches(pipeline.loaders[name], ctx, parts.store.cache, scope, timeout, parts.log)


class PipelineCache:
    """The cache that pipelines use as `ctx.cache`."""

    def __init__(self, parts: FacilityParts, scope: str) -> None:
        self._cache = parts.store.cache
        self._limit = parts.max_value_bytes
        self._scope = scope

    async def get(self, key: str, default: Any = None) -> Any:
        return (await self.get_many([key])).get(key, default)

    async def get_many(self, keys: Sequence[str]) -> dict[str, Any]:
        """Returns the entries that exist, by key."""
        return await _or_wait(self._cache.read(self._scope, keys))

    async def put(self, key: str, value: Any, *, seconds: float) -> None:
        await self.put_many({key: value}, seconds=seconds)

    async def put_many(self, values: Mapping[str, Any], *, seconds: float) -> None:
        for key, value in values.items():
            size = len(orjson.dumps(value))
            if size > self._limit:
                raise ItemError("TOO_LARGE", f"the cache entry {key!r} has {size:,} bytes")
        entries = {key: (value, seconds) for key, value in values.items()}
        await _or_wait(self._cache.put(self._scope, entries))

    async def drop(self, *keys: str) -> None:
        await _or_wait(self._cache.drop(self._scope, keys))


async def _or_wait(action: Awaitable[T]) -> T:
    """Waits for the database; without it, the item gives up its place uncharged: nothing is wrong
    with it."""
    try:
        return await action
    except (DatabaseGone, Conflict) as gone:
        raise GateWait("database", _DATABASE_SECONDS, str(gone)) from gone


class _Blocking:
    """Calls an object's coroutine methods from a thread, without `await`."""

    def __init__(self, target: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._target = target
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._target, name)

        def call(*args: Any, **options: Any) -> Any:
            return asyncio.run_coroutine_threadsafe(method(*args, **options), self._loop).result()

        return call


class BlockingFacilities:
    """The facilities for a function that runs in a thread: calls without `await`."""

    def __init__(self, facilities: Facilities, loop: asyncio.AbstractEventLoop) -> None:
        self.cache: Any = _Blocking(facilities.cache, loop)
        self.files: Any = BlockingFiles(facilities.files, loop)
        self.file: Any = lambda row: blocking_context(facilities.file(row), loop)
        calls = _Blocking(facilities, loop)
        self.read: Any = calls.read
        self.load: Any = calls.load
        self.flag: Any = calls.flag
