"""The lines that `holdfast run` prints before and after the work."""

from __future__ import annotations

from holdfast.cli.output import errors, seconds_left
from holdfast.model import Counters, Job
from holdfast.tables.files import TableFile


def print_detected(file: TableFile) -> None:
    detected = file.detected
    parts = [
        detected.format.upper(),
        detected.encoding,
        detected.sheet and f"sheet {detected.sheet!r}",
    ]
    if detected.delimiter:
        parts.append(f"delimiter {detected.delimiter!r}")
    parts.append(f"{len(detected.columns)} columns")
    description = ", ".join(part for part in parts if part)
    errors.print(f"{file.path.name}: {description}", markup=False)
    for note in detected.notes:
        errors.print(f"  {note}", markup=False)


def print_summary(job: Job, counters: Counters, seconds: float, stopped: bool) -> None:
    errors.print(
        f"Job {job.id} {'stopped' if stopped else job.state}: "
        f"{counters.accepted:,} accepted, {counters.done:,} done, "
        f"{counters.not_found:,} not found, {counters.skipped:,} skipped, "
        f"{counters.error:,} error, {counters.open:,} open, {counters.retried:,} retries, "
        f"{counters.known:,} already known, in {seconds_left(seconds)}."
    )
