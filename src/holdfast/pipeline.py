"""What a user writes: a decorated function, or a class if more is needed.

@pipeline(columns=["title", "price"])
async def prices(row, ctx):
    reply = await ctx.http.get("https://shop.example/search", params={"q": row["title"]})
    ...
    return {"title": row["title"], "price": 12}      # or NotFound, Retry(after=60), Skip("why")
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

from holdfast.columns import Inputs
from holdfast.errors import ErrorCode, PipelineError, RetryClass
from holdfast.flags import FlagValue
from holdfast.loader import CacheHandle, Loader
from holdfast.model import Gate as Gate
from holdfast.model import ItemStatus, Job, Json, Lane, NothingYet, Page, Schedule, StreamStatus
from holdfast.options import Option, filled_options
from holdfast.orders import Conclusion, Planned
from holdfast.reading import Dedupe as Dedupe
from holdfast.rulings import Proposal, Ruled
from holdfast.stored_files import PipelineFiles


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays between the attempts at an item, in seconds: `base`, doubled each time up to `cap`.
    `jitter` is the share of each delay that is random."""

    base: float
    cap: float
    jitter: float = 1.0

    def __post_init__(self) -> None:
        if not (0 <= self.base <= self.cap and 0 <= self.jitter <= 1):
            raise PipelineError(
                f"{self} is not a backoff",
                "base is at least 0 and not above cap; jitter is between 0 and 1.",
            )


@dataclass(frozen=True, slots=True)
class Done:
    """A result with effects: what `save` needs besides the result, and only `save`.

    Effects can be anything. They are kept in memory until the item is settled and are not stored.
    """

    result: Any
    effects: Any = None


class Http(Protocol):
    """The polite HTTP client, as pipelines see it."""

    async def get(self, url: str, **options: Any) -> Any: ...

    async def post(self, url: str, **options: Any) -> Any: ...

    async def request(self, method: str, url: str, **options: Any) -> Any: ...

    async def throttled(self, reply: Any, reason: str, at_least: float = 0.0) -> Any: ...

    def unavailable(self, reply: Any, reason: str) -> Any: ...


class Row(Sequence[Any], ABC):
    """A row of a query result. Read it by column name, or by position if the query returns a single
    value or many rows that have to be read quickly."""

    @abstractmethod
    def __getitem__(self, column: Any) -> Any: ...

    @abstractmethod
    def keys(self) -> Iterable[str]: ...


class Tx(Protocol):
    """The settling transaction, as `save` sees it. Parameters are written `:name`.

    `fetch`, `take` and `take_many` take the name of a query in the extension's `sql`
    folder.
    """

    async def execute(self, sql: str, params: Mapping[str, Any] | None = None) -> None: ...

    async def execute_many(self, sql: str, rows: Sequence[Mapping[str, Any]]) -> None: ...

    async def fetch(self, query: str, params: Mapping[str, Any] | None = None) -> list[Row]: ...

    async def take(self, query: str, params: Mapping[str, Any]) -> list[Row]:
        """Writes by a named query and returns rows."""

    async def copy(self, table: str, columns: Sequence[str], rows: Any) -> None:
        """Adds rows to a table in the fastest way that the database offers."""

    async def take_many(
        self, query: str, rows: Sequence[Sequence[Any]] | Sequence[Mapping[str, Any]]
    ) -> list[Row]:
        """Runs a named query for a batch and returns all resulting rows. For a query with `@rows`,
        each row is given by the names there, or in their order."""

    async def send(
        self,
        exchange: str,
        routing_key: str,
        body: Any,
        *,
        headers: Mapping[str, str | int | float | bool] | None = None,
        message_id: str | None = None,
    ) -> str:
        """Sends a message to an exchange of the broker, if this transaction is committed: at least
        once, with the same id each time, which is returned. Bytes and text are sent as they are,
        anything else as JSON."""

    def after_commit(self, call: Callable[[], None]) -> None:
        """Calls a function once the transaction is committed; not if it is rolled back or run
        again. Use it for what cannot be taken back, such as counting a metric."""


class Fetch(Protocol):
    """Reads with a named query.

    The commands, pages and sample data of an extension receive one; its queries read its own
    tables."""

    async def __call__(
        self, query: str, params: Mapping[str, Any] | None = None, /
    ) -> list[Row]: ...


class Facilities(Protocol):
    """What a worker offers to the items of one job, besides HTTP and gates. In a plain `def`
    pipeline, the same calls without `await`."""

    @property
    def cache(self) -> CacheHandle: ...

    @property
    def files(self) -> PipelineFiles: ...

    def file(self, row: Mapping[str, Any]) -> Any: ...

    async def read(self, query: str, params: Mapping[str, Any] | None = None) -> list[Row]: ...

    async def load(self, name: str, key: str) -> Any: ...

    async def flag(self, name: str) -> FlagValue: ...


#: Opens a gate, or the one of that name, for a passage that costs this much of its budget.
OpenGate = Callable[[str | Gate, float], Any]


class Context:
    """What `process` receives besides the row."""

    __slots__ = ("_facilities", "_gates", "attempt", "http", "job", "log", "seq")

    def __init__(
        self,
        job: Job,
        seq: int,
        attempt: int,
        http: Http,
        gates: OpenGate,
        log: Any,
        facilities: Facilities,
    ) -> None:
        self.job = job
        self.seq = seq
        self.attempt = attempt  # 1 for the first attempt; includes throttled ones
        self.http = http
        self.log = log
        self._gates = gates
        self._facilities = facilities

    @property
    def options(self) -> Mapping[str, Any]:
        """The options of the job, as given with --option NAME=VALUE."""
        return self.job.options

    def file(self, row: Mapping[str, Any]) -> Any:
        """Makes a local copy of an uploaded image, which is removed afterwards: `async with
        ctx.file(row) as path:`."""
        return self._facilities.file(row)

    def gate(self, gate: str | Gate, cost: float = 0.0) -> Any:
        """Passes a gate for work that does not use ctx.http: `async with ctx.gate("provider"):`.

        `cost` is what it uses of the units of the gate's budget. A `Gate` instead of a name is
        declared by its first use: for limits that are only known when a job runs."""
        return self._gates(gate, cost)

    def read(self, query: str, params: Mapping[str, Any] | None = None) -> Any:
        """Reads the pipeline's own tables, by a named query of its extension or by SQL: `rows =
        await ctx.read(...)`. It cannot write."""
        return self._facilities.read(query, params)

    def load(self, name: str, key: str) -> Any:
        """Looks a key up, together with those that other items ask for at the same time: `await
        ctx.load("entity", "Q42")`. The pipeline declares the loader in `loaders`."""
        return self._facilities.load(name, key)

    def flag(self, name: str) -> Any:
        """Returns the value of a flag of the extension or the core, at most two seconds old: `await
        ctx.flag("weather_radar")`."""
        return self._facilities.flag(name)

    @property
    def cache(self) -> Any:
        """The pipeline's cache: `await ctx.cache.put(key, value, seconds=3600)`, `await
        ctx.cache.get(key)`."""
        return self._facilities.cache

    @property
    def files(self) -> Any:
        """The pipeline's own files: `await ctx.files.put("a/b.pdf", content)`, `await
        ctx.files.read("a/b.pdf")`. See PipelineFiles."""
        return self._facilities.files


class Settled:
    """One item as `save` sees it, in the transaction that settles it.

    `normalized` is what `process` received, or None if `normalize` failed; `effects` are those of
    `Done(result, effects=...)`."""

    __slots__ = (
        "_normalized", "_result", "_row", "attempts", "code", "effects", "job", "message", "seq",
        "status",
    )  # fmt: skip

    def __init__(
        self,
        seq: int,
        status: ItemStatus,
        row: Json | Callable[[], Json],
        result: Any,
        job: Job,
        normalized: Any = None,
        code: str | None = None,
        message: str | None = None,
        attempts: int = 1,
        effects: Any = None,
    ) -> None:
        """Takes `row` and `result`, which may be functions that return it, and `normalized`, which
        may be AS_ROW."""
        self.seq = seq
        self.status = status
        self._row = row
        self._result = result
        self.job = job
        self._normalized = normalized
        self.code = code
        self.message = message
        self.attempts = attempts
        self.effects = effects

    @property
    def row(self) -> Json:
        if callable(self._row):
            self._row = self._row()
        return self._row

    @property
    def result(self) -> Any:
        if callable(self._result):
            self._result = self._result()
        return self._result

    @property
    def normalized(self) -> Any:
        return self.row if self._normalized is AS_ROW else self._normalized


#: The normalized row of a pipeline that does not normalize.
AS_ROW: Any = object()


@dataclass(frozen=True, slots=True)
class ItemEvidence:
    """Something that was fetched for an item and is stored, as its page and the API show it."""

    title: str
    at: datetime
    detail: Mapping[str, Any]
    link: str | None = None  # a page of the extension that shows it


#: The kinds of errors for which a pipeline can set a backoff.
BACKOFF_KINDS = (
    str(RetryClass.SOON),
    str(RetryClass.LATER),
    str(RetryClass.THROTTLE),
    "not_found",
)

#: The streams of the named sources (None: all). Their jobs are locked until the transaction ends.
StreamStatuses = Callable[[Sequence[str] | None], Awaitable[Sequence[StreamStatus]]]


class Pipeline:
    """Where records come from, how one is processed, and which columns the results have.

    Subclass it and override what differs; only `process` is required.
    """

    name: str = ""
    columns: Sequence[str] = ()
    inputs: Inputs = ()  # fields that rows should have, or each field with its aliases in files
    options: Sequence[Option] = ()  # what can be set per job; anything else is refused
    timeout: float | None = None  # seconds per item; None: HOLDFAST_ITEM_TIMEOUT_SECONDS
    min_concurrency: int = 1
    max_concurrency: int | None = None  # None: HOLDFAST_CONCURRENCY_MAX
    gates: Sequence[Gate] = ()
    dedupe: Dedupe | None = None
    lane: Lane = Lane.UPLOAD
    error_codes: Mapping[str, ErrorCode] = {}
    max_attempts: int | None = None  # None: HOLDFAST_MAX_ATTEMPTS_ERROR
    max_attempts_not_found: int | None = None
    #: Delays between attempts. One for both "soon" and "later", or by kind: "soon", "later",
    #: "throttle", "not_found". Kinds that are not set use the settings.
    backoff: Backoff | Mapping[str, Backoff] | None = None
    schedules: Sequence[Schedule] = ()  # set by the first worker, once
    loaders: Mapping[str, Loader] = {}  # what ctx.load(name, key) looks up in batches
    schema: Sequence[str] = ()  # statements that create missing tables that `save` writes
    slice_pages: int | None = None  # maximum number of pages of a stream that are read at a time
    follows: bool = False  # its sources never end: no error makes it give one up
    standing: bool = False  # workers open its standing job, which accepts records at any time
    #: Its records refer to rows that its own consumers wrote, so only they add records: no person
    #: starts a job of it, and no one else adds to one.
    fed_by_consumers: bool = False

    def __init__(self) -> None:
        self.file: str | None = None  # the file it was loaded from
        self.extension: str | None = None  # name of its extension
        self.enabled_by: str | None = None  # the flag without which it starts no jobs
        self.metrics: Any = None  # what the metrics part of its extension returned
        self.name = self.name or _snake_case(type(self).__name__)
        self._check_process()
        self._check_backoff()
        self.threaded = not inspect.iscoroutinefunction(self.process)
        self.normalizes = type(self).normalize is not Pipeline.normalize
        self.saves = type(self).save is not Pipeline.save
        self.discovers = type(self).discover is not Pipeline.discover
        self.plans = type(self).plan is not Pipeline.plan
        self.concludes = type(self).conclude is not Pipeline.conclude
        self.tends = type(self).tend is not Pipeline.tend
        self.rules = type(self).ruling is not Pipeline.ruling

    def _check_process(self) -> None:
        if getattr(self.process, "__func__", None) is Pipeline.process:
            raise PipelineError(
                f"the pipeline {self.name} has no `process` method",
                "Add one: async def process(self, row, ctx).",
            )
        try:
            inspect.signature(self.process).bind(None, None)
        except TypeError:
            raise PipelineError(
                f"the pipeline {self.name} must take two arguments: row and ctx",
                "Write async def NAME(row, ctx), or in a class async def process(self, row, ctx).",
            ) from None

    def _check_backoff(self) -> None:
        if isinstance(self.backoff, Mapping):
            unknown = sorted(set(self.backoff) - set(BACKOFF_KINDS))
            if unknown:
                raise PipelineError(
                    f"the pipeline {self.name} has no backoff {unknown[0]!r}",
                    f"Kinds: {', '.join(BACKOFF_KINDS)}.",
                )

    def sources(self, options: Mapping[str, Any]) -> Sequence[str]:
        """Returns the names of the sources to read; each becomes a separate stream."""
        return (self.name,)

    def fingerprint(self, source: str, options: Mapping[str, Any]) -> str:
        """Identifies the query behind the cursor: a stored cursor is refused if this changed."""
        return source

    def discover(self, source: str, cursor: Any, ctx: Context) -> AsyncIterator[Page | NothingYet]:
        """Yields the pages of a source from `cursor` (None: from the beginning)."""
        raise NotImplementedError

    def key(self, row: Json) -> str | None:
        """Returns the identity of the record across jobs, if `dedupe` is set."""
        return None

    def normalize(self, row: Json) -> Json:
        """Returns the row in canonical form.

        It is stored next to the row and passed to `process`."""
        return row

    def process(self, row: Json, ctx: Context) -> Any:
        """Turns one record into one result.

        It may be `async def`; a plain `def` runs in a thread."""
        raise NotImplementedError

    async def save(self, tx: Tx, settled: Sequence[Settled]) -> None:
        """Writes domain rows in the transaction that settles the items."""

    async def ruling(self, tx: Tx, ruled: Ruled) -> Mapping[str, Any] | None:
        """Judges a person's decision about an item, in the transaction that writes it: raises
        UserError to refuse it, writes domain rows, and returns the values of columns that take
        precedence in grid and export (None: those of the edit or of the choice)."""
        return None

    async def proposals(
        self, fetch: Fetch, job: Job, criteria: Json, after: int, limit: int
    ) -> Sequence[Proposal]:
        """Returns what a decision in bulk decides about the next items of a job that match the
        criteria and that no one has decided about, by their `seq`, which is above `after`."""
        return ()

    async def note(self, tx: Tx, job: Job, notes: Any, taken: int) -> None:
        """Stores what a page contains besides records (`Page.notes`), together with its cursor.

        `taken` of its records were looked at: fewer than it has if a cap cut it."""

    async def plan(self, tx: Tx, request: Json, streams: StreamStatuses, now: datetime) -> Planned:
        """Decides what to do about a request: start or resume jobs, set marks.

        The request is {"follow": source} when a job that concludes has ended, and {"force_full":
        source} when a person asks to read a stream again from the beginning.
        """
        raise NotImplementedError

    async def conclude(self, tx: Tx, job: Job, stream: StreamStatus) -> Conclusion:
        """Decides whether a stream that ended is complete, once all its items are settled."""
        raise NotImplementedError

    async def evidence(self, fetch: Fetch, job_id: int, seq: int) -> Sequence[ItemEvidence]:
        """Returns what is stored about an item besides its result, in order of time."""
        return ()

    async def tend(self, tx: Tx) -> bool:
        """Does a small piece of background work; returns True if more is left."""
        return False


def with_defaults(pipeline: Pipeline, job: Job) -> Job:
    """Returns the job with defaults of options that its pipeline gained after it was created."""
    return replace(job, options=filled_options(pipeline.options, job.options))


class _FunctionPipeline(Pipeline):
    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        self.process = function  # type: ignore[method-assign]
        for name, value in options.items():
            setattr(self, name, value)
        self.name = options.get("name") or function.__name__
        self.__doc__ = function.__doc__
        super().__init__()


_OPTIONS = frozenset(vars(Pipeline)["__annotations__"])


def pipeline(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Turns a function into a pipeline; the options are the attributes of `Pipeline`."""
    unknown = sorted(set(options) - _OPTIONS)
    if unknown:
        raise PipelineError(
            f"@pipeline has no option {unknown[0]!r}", f"Options: {', '.join(sorted(_OPTIONS))}."
        )
    if isinstance(function, str):
        raise PipelineError(
            f"@pipeline cannot be called with only a name: {function!r}",
            f"Write @pipeline(name={function!r}), or omit it to use the name of the function.",
        )
    if function is not None:
        return _FunctionPipeline(function, options)
    return lambda decorated: _FunctionPipeline(decorated, options)


def _snake_case(name: str) -> str:
    return "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")
