"""Describes a project with its datasets, and what became of their entries."""

from __future__ import annotations

from dataclasses import asdict

from holdfast.errors import NotThere
from holdfast.model import Counters, Job, JobState, Json
from holdfast.server.dependencies import Parts
from holdfast_linker.projects import Project
from holdfast_linker.tasks import TaskState
from holdfast_linker.web.api.shapes import (
    DatasetShape,
    Figures,
    ProjectShape,
    RulesShape,
    reads_of,
)

LIVE = (JobState.QUEUED, JobState.RUNNING, JobState.PAUSED)


async def describe_project(project: Project, parts: Parts) -> ProjectShape:
    reads = reads_of(parts)
    datasets = await reads.datasets(project.id)
    jobs = await _jobs([d["job_id"] for d in datasets if d["job_id"] is not None], parts)
    shapes = [_dataset(dataset, jobs) for dataset in datasets]
    figures = await _figures(project, list(jobs.values()), parts)
    return ProjectShape(
        id=project.id,
        owner_id=project.owner_id,
        name=project.name,
        state=_state(shapes, figures),
        rules=RulesShape(**asdict(project.rules)),
        readers=await reads.readers(project.id),
        datasets=shapes,
        figures=figures,
        created_at=project.created_at,
    )


async def _jobs(ids: list[int], parts: Parts) -> dict[int, tuple[Job, Counters]]:
    jobs = []
    for job_id in ids:
        try:
            jobs.append(await parts.console.jobs.job(job_id, None))
        except NotThere:
            continue
    return {job.id: (job, counters) for job, counters, _ in await parts.console.jobs.counted(jobs)}


def _dataset(dataset: Json, jobs: dict[int, tuple[Job, Counters]]) -> DatasetShape:
    job, counters = jobs.get(dataset["job_id"], (None, Counters()))
    return DatasetShape(
        id=dataset["id"],
        name=dataset["name"],
        file_id=dataset["file_id"],
        job_id=None if job is None else job.id,
        job_state=None if job is None else str(job.state),
        open=counters.open if job is not None and job.state in LIVE else 0,
        mapping=dataset["mapping"],
    )


async def _figures(project: Project, jobs: list[tuple[Job, Counters]], parts: Parts) -> Figures:
    reads = reads_of(parts)
    states = await reads.counts(project.id)
    entries, calls = await reads.usage(project.id)
    live = [(job, counters) for job, counters in jobs if job.state in LIVE and counters.open]
    linked = await reads.linked(project.id)
    decided = states[TaskState.REVIEWED] + states[TaskState.AUTO_CONFIRMED]
    total = sum(states.values())
    return Figures(
        states=states,
        open=sum(counters.open for _, counters in live),
        queue_age_seconds=_oldest([job for job, _ in live], parts),
        calls_per_entry=round(calls / entries, 3) if entries else None,
        acceptance=round(linked / decided, 4) if decided else None,
        dead_letters=round(states[TaskState.FAILED] / total, 4) if total else None,
    )


def _oldest(jobs: list[Job], parts: Parts) -> float | None:
    """Returns how long the oldest job with open entries has been waiting."""
    since = [job.created_at for job in jobs if job.created_at is not None]
    if not since:
        return None
    return round(max(0.0, (parts.clock.now() - min(since)).total_seconds()), 1)


def _state(datasets: list[DatasetShape], figures: Figures) -> str:
    """Returns the state of a project, as docs/reference.md lists them."""
    states = {dataset.job_state for dataset in datasets}
    if not datasets:
        return "draft"
    if states & {str(state) for state in LIVE}:
        return "processing"
    if str(JobState.FAILED) in states:
        return "processing_failed"
    if None in states:
        return "active"
    waiting = (TaskState.AWAITING_REVIEW, TaskState.NO_CANDIDATES)
    if any(figures.states[state] for state in waiting):
        return "review_ready"
    return "completed"
