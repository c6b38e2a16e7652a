"""What the items of one job may use besides HTTP and gates: reads of their own tables."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from holdfast.errors import DatabaseGone, GateWait, PipelineError
from holdfast.pipeline import Facilities, Pipeline, Row
from holdfast.store import Store
from holdfast.store.driver import Conflict

_DATABASE_SECONDS = 5.0


class JobFacilities:
    def __init__(self, store: Store, pipeline: Pipeline) -> None:
        self._driver = store.database.driver
        self._pipeline = pipeline

    async def read(self, query: str, params: Mapping[str, Any] | None = None) -> list[Row]:
        """A named query of the pipeline's extension, or SQL. Without the database, the item gives
        up its place uncharged: nothing is wrong with it."""
        self._check(query)
        try:
            async with self._driver.reading() as tx:
                return await tx.fetch(query, params)
        except (DatabaseGone, Conflict) as gone:
            raise GateWait("database", _DATABASE_SECONDS, str(gone)) from gone

    def _check(self, query: str) -> None:
        """SQL has spaces; names have none, and only the extension's own can be used."""
        if any(character.isspace() for character in query):
            return
        extension = self._pipeline.extension
        own = extension is not None and query.startswith(f"{extension}_")
        if not own or query not in self._driver.queries:
            raise PipelineError(
                f"the pipeline {self._pipeline.name} has no query {query!r}",
                "ctx.read takes SQL, or the name of a query in the extension's sql folder.",
            )


class BlockingFacilities:
    """The same for a function that runs in a thread: calls without `await`."""

    def __init__(self, facilities: Facilities, loop: asyncio.AbstractEventLoop) -> None:
        self._facilities = facilities
        self._loop = loop

    def read(self, query: str, params: Mapping[str, Any] | None = None) -> Any:
        return self._wait(self._facilities.read(query, params))

    def _wait(self, call: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(call, self._loop).result()
