"""The words of Holdfast as types: states, their legal transitions, records, leases, outcomes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from holdfast.errors import IllegalTransition, PipelineError
from holdfast.reading import Reading

Json = dict[str, Any]


class JobState(StrEnum):
    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    DONE = "DONE"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    DELETING = "DELETING"  # what is left of it is being deleted


#: verb -> (states it may start from, state it leads to). The same verb names the SQL query,
#: the method, the log event and the command.
JOB_TRANSITIONS: dict[str, tuple[frozenset[JobState], JobState]] = {
    "start": (frozenset({JobState.QUEUED}), JobState.RUNNING),
    "pause": (frozenset({JobState.QUEUED, JobState.RUNNING}), JobState.PAUSED),
    "resume": (
        frozenset({JobState.PAUSED, JobState.FAILED, JobState.DONE}),
        JobState.RUNNING,
    ),
    "reprocess": (
        frozenset({JobState.RUNNING, JobState.PAUSED, JobState.DONE, JobState.FAILED}),
        JobState.RUNNING,
    ),
    "finish": (frozenset({JobState.RUNNING}), JobState.DONE),
    "fail": (frozenset({JobState.QUEUED, JobState.RUNNING}), JobState.FAILED),
    "cancel": (
        frozenset({JobState.QUEUED, JobState.RUNNING, JobState.PAUSED, JobState.FAILED}),
        JobState.CANCELLED,
    ),
    "delete": (frozenset(JobState), JobState.DELETING),
}


def next_job_state(verb: str, state: JobState) -> JobState:
    """Returns the state that `verb` leads to; reprocessing a paused job leaves it paused."""
    allowed, target = JOB_TRANSITIONS[verb]
    if state not in allowed:
        raise IllegalTransition(
            f"cannot {verb} a job that is {state}", "`holdfast show JOB` shows its state."
        )
    if verb == "reprocess" and state is JobState.PAUSED:
        return JobState.PAUSED
    return target


class LetterState(StrEnum):
    """The state of a dead letter."""

    OPEN = "OPEN"
    REPLAYED = "REPLAYED"
    DROPPED = "DROPPED"


class ItemStatus(StrEnum):
    PENDING = "PENDING"
    PROCESSING = "PROCESSING"  # never stored: an open item under a live lease
    DONE = "DONE"
    ERROR = "ERROR"
    NOT_FOUND = "NOT_FOUND"
    SKIPPED = "SKIPPED"


FINAL = frozenset({ItemStatus.DONE, ItemStatus.ERROR, ItemStatus.NOT_FOUND, ItemStatus.SKIPPED})
OPEN = frozenset({ItemStatus.PENDING, ItemStatus.PROCESSING})

#: status -> statuses that may follow it. A final item is opened again only by reprocess.
ITEM_TRANSITIONS: dict[ItemStatus, frozenset[ItemStatus]] = {
    ItemStatus.PENDING: frozenset({ItemStatus.PROCESSING, ItemStatus.SKIPPED}),
    ItemStatus.PROCESSING: FINAL | {ItemStatus.PENDING},
    ItemStatus.DONE: frozenset({ItemStatus.PENDING}),
    ItemStatus.ERROR: frozenset({ItemStatus.PENDING}),
    ItemStatus.NOT_FOUND: frozenset({ItemStatus.PENDING}),
    ItemStatus.SKIPPED: frozenset({ItemStatus.PENDING}),
}


class StreamState(StrEnum):
    RUNNING = "RUNNING"  # has more pages
    COMPLETE = "COMPLETE"  # the source said explicitly that it ended
    CAPPED = "CAPPED"  # stopped at a cap; the cursor is where it stopped
    FAILED = "FAILED"  # an error that waiting does not fix


class Lane(StrEnum):
    SENTINEL = "SENTINEL"
    BACKFILL = "BACKFILL"
    UPLOAD = "UPLOAD"
    EVENT = "EVENT"


@dataclass(frozen=True, slots=True)
class Gate:
    """A shared limit on one domain or provider, held across all workers.

    Requests start at least `spacing` seconds apart, plus up to `jitter` more, with at most
    `concurrency` in flight (0: no limit). A budget allows `requests`, and `units` of what they
    cost, in `period` seconds (0: no limit).
    """

    name: str
    spacing: float = 0.0
    jitter: float = 0.0
    concurrency: int = 0
    requests: int = 0
    units: float = 0.0
    period: float = 60.0

    def __post_init__(self) -> None:
        limits = (self.spacing, self.jitter, self.concurrency, self.requests, self.units)
        if self.period <= 0 or not all(0 <= limit < math.inf for limit in (*limits, self.period)):
            raise PipelineError(
                f"{self} is not a gate", "Limits are at least 0; the period is above 0."
            )


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule that a pipeline brings: `Schedule("weather-daily", "0 6 * * *", "Europe/Zagreb")`.

    It is set once, when the pipeline is on; a person may change or remove it."""

    name: str
    cron: str
    zone: str = "UTC"
    options: Mapping[str, Any] = field(default_factory=dict)


class Record(NamedTuple):
    """One record of a page, as the source returned it.

    `version` is compared if its key is known, to see whether the content changed: None means the
    whole input, and an empty one that it did not change."""

    input: Json
    key: str | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """What a source yields. `next_cursor` is plain JSON; `end` means that the source
    said explicitly that nothing follows. A page with neither is an error, never an end."""

    records: list[Record]
    next_cursor: Any = None
    end: bool = False
    expected_count: int | None = None
    notes: Any = None  # what it contains besides records, for the pipeline's `note`


@dataclass(frozen=True, slots=True)
class NothingYet:
    """The source has no more records now and has not ended; `discover` yields this instead of a
    page. It is asked again, from the same cursor, after `after` seconds."""

    after: float = 1.0
    waiting_for: str = "new records"


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """The state of a stream, as a pipeline's `plan` and `conclude` see it."""

    stream_id: int
    source: str
    mode: str
    state: StreamState
    generation: int
    cursor: Any  # as the source returned it
    pages_count: int
    records_count: int
    job_id: int
    job_state: JobState
    full_completed_at: datetime | None
    verified_at: datetime | None
    force_full: bool
    rerun_requested: bool
    error: str | None

    @property
    def live(self) -> bool:
        """Whether its job has not ended: it is running, or paused by a person."""
        return self.job_state in (JobState.QUEUED, JobState.RUNNING, JobState.PAUSED)


class Item(NamedTuple):
    """One record of a job, as a worker reads it."""

    seq: int
    input: str
    tries: int = 0
    attempts: int = 0
    misses: int = 0


#: Number of expiries after which a range is split into pieces that run alone.
ALONE_AFTER = 2
#: Number of worker deaths, while alone in its range, after which an item is a dead letter.
LONE_EXPIRIES = 3


@dataclass(slots=True)
class Lease:
    """A worker's hold on a range. `settled` counts the settlements under any lease of it."""

    range_id: int
    job_id: int
    lo: int
    hi: int
    again: bool
    token: str
    settled: int
    expiries: int

    @property
    def alone(self) -> bool:
        """Whether the range runs alone, having lost its worker twice: it contains what kills its
        worker."""
        return self.expiries >= ALONE_AFTER


class Outcome(NamedTuple):
    """The result of one attempt at an item, ready to be settled. Its fields are in the order of
    the table's columns.

    Status PENDING means another try, due after `delay` seconds; `logged` keeps this one in the
    item's history.
    """

    seq: int
    status: ItemStatus
    tries: int
    attempts: int
    misses: int
    normalized: str | None = None
    result: str | None = None
    error_code: str | None = None
    error_message: str | None = None
    seconds: float = 0.0
    delay: float = 0.0
    charged: bool = True
    logged: bool = True
    effects: Any = None


@dataclass(frozen=True, slots=True)
class Job:
    id: int
    pipeline: str
    name: str
    state: JobState
    owner_id: str = "local"
    mode: str | None = None
    lane: Lane = Lane.UPLOAD
    reference: str | None = None
    input_key: str | None = None
    columns: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    reading: Reading = field(default_factory=Reading)
    max_items: int | None = None
    error: str | None = None
    created_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    updated_at: datetime | None = None
    discovered_at: datetime | None = None
    trace: str | None = None  # the `traceparent` of its creation
    ip: str | None = None  # IP address of the client that requested it over HTTP
    file_id: int | None = None
    pruned_at: datetime | None = None  # its items are gone: a later pass was verified
    standing: bool = False  # accepts records at any time and does not end
    topic: str = ""  # what a standing job is for, if a pipeline has several
    #: Finished items that retention removed from a standing job, by status; counters include them.
    removed: Mapping[str, int] = field(default_factory=dict)

    @property
    def removed_items(self) -> int:
        return sum(self.removed.values())

    @property
    def input_kind(self) -> str | None:
        """CSV for a job over a table, IMAGE for one over images; None if it discovers its
        records or is given them one by one."""
        if self.reading.images:
            return "IMAGE"
        return None if self.reference is None else "CSV"


@dataclass(frozen=True, slots=True)
class Counters:
    """accepted = done + not_found + skipped + error + open, at any moment."""

    accepted: int = 0
    done: int = 0
    not_found: int = 0
    skipped: int = 0
    error: int = 0
    retried: int = 0
    throttled: int = 0
    known: int = 0  # records that became no item, because their key is known

    @property
    def finished(self) -> int:
        return self.done + self.not_found + self.skipped + self.error

    @property
    def open(self) -> int:
        return self.accepted - self.finished


#: Shown, and filtered by, as if it were a state.
IDLE = "IDLE"


def is_idle(job: Job, counters: Counters) -> bool:
    """Whether it is a standing job with nothing open, shown as IDLE; this is not stored."""
    return job.standing and job.state is JobState.RUNNING and counters.open == 0


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check by `holdfast doctor`."""

    what: str
    ok: bool
    text: str
    fix: str | None = None
