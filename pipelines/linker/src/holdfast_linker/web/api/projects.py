"""Projects and their datasets: create, match, cancel, delete, share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response, StreamingResponse

from holdfast.errors import NotThere, UnfitState, UserError
from holdfast.features.bulk.for_extensions import export_jobs
from holdfast.features.bulk.shapes import OperationShape
from holdfast.features.exports.shapes import Format
from holdfast.features.jobs.new_jobs import FileChoice, JobRequest
from holdfast.model import ItemStatus, Job, JobState, Json
from holdfast.server.cursors import Cursors
from holdfast.server.dependencies import Parts
from holdfast.server.identity import Operator, PartsOf, Person, Someone, ip_of
from holdfast_linker.entries import ColumnMapping
from holdfast_linker.linking import require_wikidata, statement_lines
from holdfast_linker.options import mapping_text
from holdfast_linker.projects import (
    Project,
    ProjectRules,
    add_project,
    change_project,
    claim_dataset,
    hide_project,
    link_dataset,
    release_dataset,
    set_reader,
)
from holdfast_linker.quickstatements import Style
from holdfast_linker.web.api.figures import LIVE, describe_project
from holdfast_linker.web.api.shapes import (
    After,
    NewProject,
    OwnProject,
    PageSize,
    ProjectChange,
    ProjectLine,
    ProjectList,
    ProjectShape,
    Started,
    VisibleProject,
    pipeline_of,
    reads_of,
)

router = APIRouter(prefix="/api/projects", tags=["linker"])

_LAST_ID = 2**62
_JOBS_LOOKED_AT = 200
UserName = Annotated[str, Path(min_length=1, max_length=200)]
ItemId = Annotated[str | None, Query(max_length=20, alias="statedIn", examples=["Q36578"])]


@router.get("", summary="List the projects")
async def index(
    person: Someone, parts: PartsOf, page_size: PageSize = 50, after: After = None
) -> ProjectList:
    """The newest come first: your own, and those you are invited to; admins and readers see all."""
    cursors = Cursors(parts.secret, "linker projects", person.name, {})
    before = cursors.read(after) or _LAST_ID
    reads = reads_of(parts)
    projects = await reads.projects(person.scope, before, page_size + 1)
    lines = [
        ProjectLine(
            id=project.id,
            owner_id=project.owner_id,
            name=project.name,
            provider=project.rules.provider,
            states=await reads.counts(project.id),
        )
        for project in projects[:page_size]
    ]
    more = cursors.write(projects[page_size - 1].id) if len(projects) > page_size else None
    return ProjectList(projects=lines, next=more)


@router.post("", status_code=201, summary="Make a project")
async def make(body: NewProject, person: Operator, parts: PartsOf) -> ProjectShape:
    rules = ProjectRules(**body.model_dump(exclude={"name"}))
    settings = pipeline_of(parts).settings
    settings.require_contact(rules.checked().provider)
    change = add_project(person.name, body.name, rules, settings.quota_projects)
    project = await parts.control(person.name).change(change)
    return await describe_project(project, parts)


@router.get("/{project_id}", summary="Show a project")
async def show(project: VisibleProject, parts: PartsOf) -> ProjectShape:
    """Includes its datasets and what became of their entries."""
    return await describe_project(project, parts)


@router.patch("/{project_id}", summary="Change a project")
async def change(
    project: OwnProject, body: ProjectChange, person: Operator, parts: PartsOf
) -> ProjectShape:
    """Thresholds apply to entries that are matched from now on."""
    given = body.model_dump(exclude_none=True)
    name = given.pop("name", project.name)
    rules = replace(project.rules, **given)
    await parts.control(person.name).change(change_project(project, name, rules))
    return await describe_project(await reads_of(parts).project(project.id, None), parts)


@router.delete("/{project_id}", status_code=202, summary="Delete a project")
async def delete(project: OwnProject, person: Operator, parts: PartsOf) -> Response:
    """Its jobs, entries, candidates, files, exports and tokens go with it; its entries in the audit
    log stay. It disappears at once; the rest is deleted in the background, and continues after a
    restart."""
    await parts.control(person.name).change(hide_project(project))
    for dataset in await reads_of(parts).datasets(project.id):
        if dataset["job_id"] is not None:
            with suppress(NotThere):  # someone else has deleted it
                await parts.deletions.jobs.begin(dataset["job_id"], person.name)
    return Response(status_code=202)


@router.post("/{project_id}/match", status_code=202, summary="Match the entries of a project")
async def match(project: OwnProject, request: Request, person: Operator, parts: PartsOf) -> Started:
    """Starts the datasets that were not matched yet, and entries that failed again.

    Entries that have a result, or a decision of a person, stay as they are."""
    return await match_project(project, ip_of(request), person, parts)


async def match_project(project: Project, ip: str | None, person: Person, parts: Parts) -> Started:
    pipeline_of(parts).settings.require_contact(project.rules.provider)
    await parts.new_jobs.require_capacity(person)
    started, again = [], 0
    for dataset in await reads_of(parts).datasets(project.id):
        if dataset["job_id"] is not None:
            again += await _failed_again(dataset["job_id"], person, parts)
        elif dataset["file_id"] is not None:
            job_id = await _start(project, dataset, ip, person, parts)
            started += [] if job_id is None else [job_id]
    return Started(jobs=started, matched_again=again)


async def _start(
    project: Project, dataset: Json, ip: str | None, person: Person, parts: Parts
) -> int | None:
    """Starts the job of a dataset; returns None if another request is starting it."""
    control = parts.control(person.name)
    if not await control.change(claim_dataset(dataset["id"])):
        return None
    job_id = await job_of_dataset(dataset["id"], project, parts)
    if job_id is None:
        mapping = ColumnMapping(**dataset["mapping"])
        request = JobRequest(
            parts.new_jobs.pipeline("linker"),
            project.job_options(mapping_text(mapping), dataset["id"]),
            ip=ip,
        )
        choice = FileChoice([dataset["file_id"]], columns_are_confirmed=True)
        owner = replace(person, name=project.owner_id)
        try:
            job_id = await parts.new_jobs.start(request, owner, choice)
        except UserError:
            await control.change(release_dataset(dataset["id"]))
            raise
    if not await control.change(link_dataset(project, dataset["id"], job_id)):
        await parts.deletions.jobs.begin(job_id, person.name)
        raise NotThere(f"project {project.id} was deleted")
    return job_id


async def job_of_dataset(dataset_id: int, project: Project, parts: Parts) -> int | None:
    """Returns the job if it was started before the dataset could be marked with it."""
    jobs = await parts.console.jobs.page(project.owner_id, _JOBS_LOOKED_AT, None, [], ["linker"])
    for job, _, _ in jobs:
        options = job.options
        if (options.get("dataset"), options.get("project")) == (dataset_id, project.id):
            return job.id
    return None


async def _failed_again(job_id: int, person: Person, parts: Parts) -> int:
    job = await _job(job_id, parts)
    if job is None or job.state in (JobState.CANCELLED, JobState.DELETING):
        return 0
    return await parts.control(person.name).reprocess(job_id, [ItemStatus.ERROR])


async def _job(job_id: int, parts: Parts) -> Job | None:
    try:
        return await parts.console.jobs.job(job_id, None)
    except NotThere:
        return None


@router.post("/{project_id}/cancel", status_code=202, summary="Cancel the jobs of a project")
async def cancel(project: OwnProject, person: Operator, parts: PartsOf) -> ProjectShape:
    """Entries that were matched keep their results."""
    for dataset in await reads_of(parts).datasets(project.id):
        job = await _job(dataset["job_id"], parts) if dataset["job_id"] is not None else None
        if job is not None and job.state in LIVE:
            await parts.control(person.name).cancel(job.id)
    return await describe_project(project, parts)


@router.post("/{project_id}/export", status_code=202, summary="Export the results of a project")
async def export(
    project: OwnProject, person: Operator, parts: PartsOf, format: Format
) -> OperationShape:
    """Each dataset gets one export, with people's decisions.

    Its `result` names them when it is done: `GET /api/exports/{export_id}/download`."""
    datasets = await reads_of(parts).datasets(project.id)
    jobs = [dataset["job_id"] for dataset in datasets if dataset["job_id"] is not None]
    if not jobs:
        raise UnfitState("no dataset of the project was matched", "Match it first.")
    return await export_jobs(jobs, format, person, parts)


@router.put("/{project_id}/readers/{user_name}", summary="Invite a person to read a project")
async def invite(
    project: OwnProject, user_name: UserName, person: Operator, parts: PartsOf
) -> ProjectShape:
    await parts.console.people.user(user_name)
    await parts.control(person.name).change(set_reader(project, user_name, True))
    return await describe_project(project, parts)


@router.delete("/{project_id}/readers/{user_name}", summary="Withdraw an invitation")
async def withdraw(
    project: OwnProject, user_name: UserName, person: Operator, parts: PartsOf
) -> ProjectShape:
    await parts.control(person.name).change(set_reader(project, user_name, False))
    return await describe_project(project, parts)


@router.get(
    "/{project_id}/quickstatements",
    summary="Export the links as QuickStatements",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/plain": {}}}},
)
async def quickstatements(
    project: VisibleProject, parts: PartsOf, stated_in: ItemId = None
) -> StreamingResponse:
    """Contains entries that were linked, and new items for those that people said do not exist
    yet."""
    require_wikidata(project)
    try:
        style = Style(project.rules.language, stated_in=stated_in)
    except ValueError as error:
        raise UserError(str(error)) from None

    async def lines() -> AsyncIterator[bytes]:
        async with aclosing(statement_lines(parts.fetch, project, style)) as written:
            async for line in written:
                yield line.encode()

    headers = {"Content-Disposition": f'attachment; filename="project-{project.id}.qs.txt"'}
    return StreamingResponse(lines(), media_type="text/plain; charset=utf-8", headers=headers)
