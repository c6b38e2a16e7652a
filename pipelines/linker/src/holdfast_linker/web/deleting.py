"""Carries out the rest of a project's deletion, in the background of the server: its jobs, files
and rows.

Each step can be repeated. The project's row and those of its datasets go last: as long as they
exist, any process can continue.
"""

from __future__ import annotations

from contextlib import suppress

from holdfast.errors import NotThere, UserError
from holdfast.model import Json
from holdfast.server.dependencies import Parts
from holdfast_linker.projects import (
    Project,
    drop_dataset,
    drop_entries,
    drop_project,
    topic_of,
)
from holdfast_linker.web.api.projects import job_of_dataset
from holdfast_linker.web.api.shapes import reads_of

_ACTOR = "engine"
_AT_ONCE = 10


async def finish_deletions(parts: Parts) -> None:
    for row in await parts.fetch("linker_deleted_projects", {"limit": _AT_ONCE}):
        await _finish(Project.of(row), parts)


async def _finish(project: Project, parts: Parts) -> None:
    control = parts.control(_ACTOR)
    for dataset in await reads_of(parts).datasets(project.id):
        await _delete_dataset(dataset, project, parts)
        await control.change(drop_dataset(dataset["id"]))
    others = {"id": project.id, "owner_id": project.owner_id, "topic": topic_of(project.id)}
    for row in await parts.fetch("linker_other_jobs", others):
        await _delete_job(row["job_id"], parts)
    while await control.change(drop_entries(project)):
        pass
    await control.change(drop_project(project))


async def _delete_dataset(dataset: Json, project: Project, parts: Parts) -> None:
    job_id = dataset["job_id"] or await job_of_dataset(dataset["id"], project, parts)
    if job_id is not None:
        await _delete_job(job_id, parts)
    file = {"file_id": dataset["file_id"], "id": dataset["id"]}
    if dataset["file_id"] is not None and not await parts.fetch("linker_file_users", file):
        with suppress(UserError):  # it is gone, or another job reads it
            await parts.deletions.delete_file(dataset["file_id"], project.owner_id, _ACTOR)


async def _delete_job(job_id: int, parts: Parts) -> None:
    with suppress(NotThere):  # it is gone already
        await parts.deletions.jobs.begin(job_id, _ACTOR)
        await parts.deletions.jobs.delete(job_id)
