"""Orders of a pipeline that plans, and its conclusions about a stream that ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.errors import PipelineError
from holdfast.model import Gate, Lane


@dataclass(frozen=True, slots=True)
class Start:
    """An order: start a new job on one source or several, as a new generation of each that was
    read before. What is not given comes from the pipeline; without caps, there are none. `gates`
    are declared with the job, and apply from then on. `plan` is kept with the job for the pipeline
    itself, as `job.reading.plan`; people see only the options."""

    source: str | Sequence[str]
    mode: str
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    lane: Lane | None = None
    max_items: int | None = None
    max_items_per_source: int | Mapping[str, int] | None = None  # a cap for all, or by source
    gates: Sequence[Gate] = ()
    plan: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.sources:
            raise PipelineError(f"the order to start {self.name!r} names no source")
        if self.lane is Lane.UPLOAD:
            raise PipelineError(
                f"the order to start {self.name!r} has the lane UPLOAD",
                "That is for the rows of files; choose SENTINEL, EVENT or BACKFILL.",
            )

    def cap_of(self, source: str) -> int | None:
        caps = self.max_items_per_source
        return caps.get(source) if isinstance(caps, Mapping) else caps

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources, each once, in order."""
        given = (self.source,) if isinstance(self.source, str) else self.source
        return tuple(dict.fromkeys(given))


@dataclass(frozen=True, slots=True)
class Resume:
    """An order: continue the job from the cursors of its streams."""

    job_id: int


@dataclass(frozen=True, slots=True)
class Mark:
    """An order: request another job on the stream. Cleared by the Start that fulfils it."""

    stream_id: int
    force_full: bool = False
    rerun: bool = False


Order = Start | Resume | Mark


@dataclass(frozen=True, slots=True)
class Act:
    """A change to the pipeline's own rows, for the audit log."""

    action: str
    subject: str
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Planned:
    """What a pipeline decides on a request: orders, an answer for the caller, and further entries
    for the audit log."""

    orders: Sequence[Order] = ()
    answer: Any = None
    acts: Sequence[Act] = ()


@dataclass(frozen=True, slots=True)
class Verified:
    """The stream was read completely and counted."""

    expected_count: int | None
    actual_count: int | None
    proven: bool  # whether the counts prove that nothing is missing


@dataclass(frozen=True, slots=True)
class Reopen:
    """The stream is not complete yet: continue reading it from this cursor after `delay`
    seconds."""

    cursor: Any
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class Unproven:
    """The stream ended, but its records cannot be right: the job fails with this error.

    A resume continues from `cursor`.
    """

    error: str
    cursor: Any


Conclusion = Verified | Reopen | Unproven
