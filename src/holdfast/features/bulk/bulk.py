"""Bulk operations as people request them: which jobs and items they affect, counted before the
start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.errors import NotThere, UserError
from holdfast.features.accounts.person import Person
from holdfast.features.bulk.operation_runner import permanent_codes
from holdfast.features.bulk.operations import NewOperation, Operation
from holdfast.features.items.item_filters import NO_FILTER, stored_filter
from holdfast.features.items.items import ItemFilter
from holdfast.features.items.value_search import MOST_ROWS, Value, search, values_of
from holdfast.features.jobs.reads import CountedJob
from holdfast.kernel.arrivals.idempotency import RequestKey
from holdfast.model import FINAL, OPEN, ItemStatus, Job, JobState
from holdfast.pipeline import Pipeline

if TYPE_CHECKING:
    from holdfast.features.console import Console

MOST_JOBS = 1000
_FASTEST = 1_000_000  # items per second
#: The statuses to which each kind can be applied.
_APPLICABLE = {"reprocess": FINAL, "skip": frozenset({ItemStatus.PENDING})}


@dataclass(frozen=True, slots=True)
class BulkRequest:
    kind: str  # reprocess, skip, cancel, export
    job_ids: Sequence[int] = ()
    pipeline: str | None = None
    states: Sequence[JobState] = ()  # of the jobs
    items: ItemFilter = NO_FILTER
    values: Sequence[str] = ()  # such as "brand:acme"
    reset_attempts: bool = False
    include_permanent: bool = False
    items_per_second: float | None = None
    format: str = "csv"
    with_input: bool = False
    reason: str = ""

    def __post_init__(self) -> None:
        rate = self.items_per_second
        if rate is not None and not 0 < rate <= _FASTEST:
            raise UserError(
                f"a rate of {rate:,} items per second is out of range",
                f"Give a number above 0 and up to {_FASTEST:,}.",
            )


@dataclass(frozen=True, slots=True)
class Count:
    count: int
    exact: bool
    examined: int | None = None  # how many rows a search by value looked at


@dataclass(frozen=True, slots=True)
class BulkPreview:
    jobs: int
    matches: Count  # items; for `cancel` and `export`, jobs


@dataclass(frozen=True, slots=True)
class Bulk:
    console: Console
    pipelines: Mapping[str, Pipeline]

    async def preview(self, request: BulkRequest, person: Person) -> BulkPreview:
        jobs = await self._jobs(request, person)
        return BulkPreview(len(jobs), await self._count(request, jobs))

    async def start(
        self, request: BulkRequest, person: Person, key: RequestKey | None = None
    ) -> Operation:
        jobs = await self._jobs(request, person)
        matches = await self._count(request, jobs)
        target = {
            "statuses": [str(status) for status in request.items.statuses],
            **stored_filter(request.items, self._values(request, jobs)),
            "reset_attempts": request.reset_attempts,
            "include_permanent": request.include_permanent,
            "items_per_second": request.items_per_second,
            "format": request.format,
            "with_input": request.with_input,
            "reason": request.reason,
        }
        ids = [job.id for job in jobs]
        if request.kind == "export":
            await self.console.quotas.require(person.name, exports=len(ids))
        new = NewOperation(person.name, request.kind, target, ids, matches.count, key)
        operations = self.console.operations
        return await operations.operation(await operations.add(new))

    async def cancel(self, operation_id: int, person: Person) -> Operation:
        """Stops an operation that the person may see; what it changed stays changed."""
        operations = self.console.operations
        await operations.operation(operation_id, person.scope)
        await operations.cancel(operation_id, person.name)
        return await operations.operation(operation_id)

    async def count(self, job: Job, filter: ItemFilter) -> Count:
        """Counts how many of a job's items match, whatever their columns contain."""
        (counted,) = await self.console.jobs.counted([job])
        return await self._count_job(counted, filter)

    async def permanent_errors(self, job: Job, code: str | None) -> int:
        """Estimates how many errors will not go away by themselves; of one code, if given."""
        codes = permanent_codes(self.pipelines.get(job.pipeline))
        groups = await self.console.jobs.errors_by_code(job.id)
        return sum(
            group.count for group in groups if group.code in codes and code in (None, group.code)
        )

    async def _jobs(self, request: BulkRequest, person: Person) -> list[Job]:
        """Returns the jobs that match and that the person may change."""
        _check(request)
        jobs = await self._candidates(request, person.scope)
        if len(jobs) > MOST_JOBS:
            raise UserError(f"more than {MOST_JOBS} jobs match", "Narrow the filter.")
        matching = [job for job in jobs if _matches(job, request)]
        if not matching:
            raise NotThere("no job matches the filter", "GET /api/jobs lists yours.")
        return sorted(matching, key=lambda job: job.id)

    async def _candidates(self, request: BulkRequest, scope: str | None) -> list[Job]:
        jobs = self.console.jobs
        if request.job_ids:
            return [await jobs.job(job_id, scope) for job_id in dict.fromkeys(request.job_ids)]
        pipelines = [] if request.pipeline is None else [request.pipeline]
        states = [str(state) for state in request.states]
        page = await jobs.page(scope, MOST_JOBS + 1, None, states, pipelines)
        return [counted.job for counted in page]

    async def _count(self, request: BulkRequest, jobs: Sequence[Job]) -> Count:
        values = self._values(request, jobs)
        if request.kind in ("cancel", "export"):
            return Count(len(jobs), exact=True)
        if values:
            return await self._count_values(request.items, values, jobs)
        counted = await self.console.jobs.counted(jobs)
        counts = [await self._count_job(job, request.items) for job in counted]
        return Count(sum(one.count for one in counts), all(one.exact for one in counts))

    async def _count_job(self, counted: CountedJob, filter: ItemFilter) -> Count:
        counters, removed = counted.counters, counted.job.removed
        if filter.is_empty:
            return Count(counters.accepted - counted.job.removed_items, exact=True)
        if filter.rulings:
            kinds = [str(kind) for kind in filter.rulings]
            exact = filter == ItemFilter(rulings=filter.rulings)
            return Count(await self.console.rulings.count(counted.job.id, kinds), exact)
        if filter.code is None and filter.since is None and filter.until is None:
            total = sum(
                getattr(counters, str(status).lower()) - removed.get(status, 0)
                for status in filter.final
            )
            # The counters do not distinguish pending items from those in progress.
            exact = len(filter.open) in (0, len(OPEN))
            return Count(total + (counters.open if filter.open else 0), exact)
        total = 0
        for status in (*filter.final, *filter.open):
            total += await self.console.operations.count(counted.job.id, status, filter)
        # Items that were never tried have no outcome to be counted by.
        return Count(total, exact=not filter.open or filter.code is not None)

    async def _count_values(
        self, filter: ItemFilter, values: Sequence[Value], jobs: Sequence[Job]
    ) -> Count:
        """Counts matches among as many rows as one search examines: counting them all would take as
        long as changing them."""
        total = examined = 0
        for job in jobs:
            page = await search(self.console, job, filter, values, None, MOST_ROWS)
            total, examined = total + len(page.items), examined + page.looked
            if page.next is not None or examined >= MOST_ROWS:
                exact = page.next is None and job is jobs[-1]
                return Count(total, exact, examined)
        return Count(total, True, examined)

    def _values(self, request: BulkRequest, jobs: Sequence[Job]) -> tuple[Value, ...]:
        """Parses the values; all jobs must have the columns."""
        values: tuple[Value, ...] = ()
        for job in jobs:
            values = values_of(request.values, job, self.pipelines.get(job.pipeline))
        return values


def _matches(job: Job, request: BulkRequest) -> bool:
    fits = request.pipeline in (None, job.pipeline)
    return fits and (not request.states or job.state in request.states)


def _check(request: BulkRequest) -> None:
    if not (request.job_ids or request.pipeline or request.states):
        raise UserError("the filter is empty", "Name jobs, a pipeline or job states.")
    if request.items.rulings and request.kind != "export":
        raise UserError(
            "operations do not filter by ruling", "Select the rows, or leave `ruling:` out."
        )
    if request.kind == "cancel" and (not request.items.is_empty or request.values):
        # Cancelling whole jobs despite a filter on items would be a surprise.
        raise UserError(
            "cancel applies to whole jobs, not to items", "To end some of the items, skip them."
        )
    applicable = _APPLICABLE.get(request.kind)
    if applicable is None:
        return
    choices = f"Choose from {', '.join(sorted(applicable))}."
    if not request.items.statuses:
        raise UserError(f"{request.kind} needs statuses", choices)
    for status in request.items.statuses:
        if status not in applicable:
            raise UserError(f"{request.kind} does not apply to {status} items", choices)


def default_statuses(kind: str, filter: ItemFilter) -> tuple[Any, ...]:
    """Returns the statuses that are meant if a filter names none."""
    if filter.statuses:
        return filter.statuses
    if kind == "skip":
        return (ItemStatus.PENDING,)
    return (ItemStatus.ERROR,) if filter.code else tuple(sorted(FINAL))
