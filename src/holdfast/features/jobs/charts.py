"""Prepares the data of the charts: columns of numbers, the first of them Unix times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from holdfast.errors import error_code
from holdfast.model import Job
from holdfast.server.dependencies import Parts

_DECISIONS = 500
_PACE_DECISIONS = 2000
_CONTROLLED = ("claim size", "concurrency")
_INGEST = "ingest batch"
MOST_GATES = 6


async def job_charts(parts: Parts, job_id: int) -> dict[str, Any]:
    """Returns items per second, and the values that the controllers set."""
    samples = await parts.console.samples.of_job(job_id)
    rate: list[list[float]] = [[], [], []]
    for before, after in pairwise(samples):
        seconds = after.at - before.at
        rate[0].append(after.at)
        rate[1].append(max(0, after.finished - before.finished) / seconds)
        rate[2].append(max(0, after.accepted - before.accepted) / seconds)
    decisions = await parts.console.jobs.decisions(job_id, _DECISIONS)
    return {"rate": rate, "pace": _steps(reversed(decisions))}


def _steps(decisions: Iterable[dict[str, Any]]) -> list[list[Any]]:
    """Returns the value of each controller whenever one of them changes."""
    known: dict[str, float] = {}
    columns: list[list[Any]] = [[], [], []]
    for decision in decisions:
        if decision["what"] not in _CONTROLLED:
            continue
        known[decision["what"]] = decision["became"]
        columns[0].append(round(decision["at"].timestamp(), 3))
        for column, each in zip(columns[1:], _CONTROLLED, strict=True):
            column.append(known.get(each))
    return columns


async def pace_charts(parts: Parts, job: Job, gates: Sequence[str]) -> dict[str, Any]:
    """Returns the rows of an ingest batch, and how many requests were in flight at each gate."""
    decisions = await parts.console.jobs.decisions(job.id, _PACE_DECISIONS)
    decisions.reverse()
    ends = [at for at in (job.discovered_at, job.finished_at, job.updated_at) if at is not None]
    end = max([*ends, *(decision["at"] for decision in decisions)], default=None)
    until = end.timestamp() if end else 0.0
    charts = {"ingest": _line(decisions, _INGEST, until)}
    for number, gate in enumerate(gates):
        charts[f"gate-{number}"] = _line(decisions, f"concurrency at {gate}", until)
    return charts


def _line(decisions: Iterable[dict[str, Any]], what: str, until: float) -> list[list[float]]:
    """Returns the values of one controller, before its first decision and after each, to the end.

    If several workers have one each, the line shows whichever changed."""
    times: list[float] = []
    values: list[float] = []
    for decision in decisions:
        if decision["what"] == what:
            at = round(decision["at"].timestamp(), 3)
            if not times:
                times.append(at - 1)
                values.append(decision["was"])
            times.append(at)
            values.append(decision["became"])
    if times and until > times[-1]:
        times.append(round(until, 3))
        values.append(values[-1])
    return [times, values]


async def all_charts(parts: Parts, scope: str | None, seconds: float) -> dict[str, Any]:
    """Returns throughput and backlog of all jobs in scope."""
    width, steps = await parts.console.samples.of_jobs(scope, seconds)
    return {
        "throughput": [
            [step.at for step in steps],
            [max(0, step.finished - step.error) / width for step in steps],
            [max(0, step.error) / width for step in steps],
        ],
        "backlog": [[step.at for step in steps], [step.open for step in steps]],
    }


def by_category(codes: dict[str, int]) -> list[tuple[str, int]]:
    """Groups errors by category, the most frequent first."""
    totals: dict[str, int] = defaultdict(int)
    for code, count in codes.items():
        totals[str(error_code(code).category)] += count
    return sorted(totals.items(), key=lambda total: -total[1])
