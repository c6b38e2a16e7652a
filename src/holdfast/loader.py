"""What a pipeline declares to look things up in batches.

class Labels(Pipeline):
    def __init__(self):
        self.loaders = {"entity": Loader(self.fetch_entities, cache_seconds=86_400)}
        super().__init__()

    async def fetch_entities(self, ids, ctx):
        reply = await ctx.http.get(URL, params={"ids": "|".join(ids)})
        return reply.json()["entities"]

    async def process(self, row, ctx):
        entity = await ctx.load("entity", row["id"])
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from holdfast.errors import PipelineError

#: (keys, ctx) -> the values of those that exist. An exception as a value is raised for its key.
FetchBatch = Callable[[Sequence[str], Any], Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Loader:
    """Collects the keys that concurrent items ask for, and fetches them together.

    A batch is sent when it has `max_batch` keys or its first key has waited for `wait_seconds`,
    with at most `concurrency` requests at once. A key that is being fetched is not fetched twice.
    An error of `fetch` is raised for every key of the batch. Keys that `fetch` leaves out do not
    exist: `ctx.load` returns None for them.

    With `cache_seconds`, values are kept in the database for that long and found there by all
    workers and later jobs; `missing_seconds` is the same for keys that do not exist."""

    fetch: FetchBatch
    max_batch: int = 50
    wait_seconds: float = 0.005
    concurrency: int = 2
    cache_seconds: float = 0.0
    missing_seconds: float = 0.0
    max_waiting: int = 10_000  # keys that wait or are being fetched; more wait outside

    def __post_init__(self) -> None:
        counts = (self.max_batch, self.concurrency, self.max_waiting)
        seconds = (self.wait_seconds, self.cache_seconds, self.missing_seconds)
        if min(counts) < 1 or min(seconds) < 0:
            raise PipelineError(
                "a loader has an invalid limit",
                "max_batch, concurrency and max_waiting are at least 1, times at least 0.",
            )


class CacheHandle(Protocol):
    """`ctx.cache`: a pipeline's own entries, each of which expires. Values are plain JSON; None
    is a value too, for what is known not to exist."""

    async def get(self, key: str, default: Any = None) -> Any: ...

    async def get_many(self, keys: Sequence[str]) -> dict[str, Any]: ...

    async def put(self, key: str, value: Any, *, seconds: float) -> None: ...

    async def put_many(self, values: Mapping[str, Any], *, seconds: float) -> None: ...

    async def drop(self, *keys: str) -> None: ...
