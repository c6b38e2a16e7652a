"""The lines that `holdfast run` prints before and after the work."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.cli.output import errors, seconds_left
from holdfast.model import Counters, Job


def print_detected(name: str, sentences: Sequence[str]) -> None:
    description, *notes = sentences
    errors.print(f"{name}: {description}", markup=False)
    for note in notes:
        errors.print(f"  {note}", markup=False)


def print_summary(job: Job, counters: Counters, seconds: float, stopped: bool) -> None:
    if job.reading.read_as:
        description, *notes = job.reading.read_as
        errors.print(f"{job.name} was read as {description}.", markup=False)
        for note in notes:
            errors.print(f"  {note}", markup=False)
    errors.print(
        f"Job {job.id} {'stopped' if stopped else job.state}: "
        f"{counters.accepted:,} accepted, {counters.done:,} done, "
        f"{counters.not_found:,} not found, {counters.skipped:,} skipped, "
        f"{counters.error:,} error, {counters.open:,} open, {counters.retried:,} retries, "
        f"{counters.known:,} already known, in {seconds_left(seconds)}."
    )
