"""Starts a new job: preview a file, name its columns, try the first rows, then start; or opens one
that stays open for records."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Response

from holdfast.errors import UserError
from holdfast.features.jobs.added_files import AddedFiles
from holdfast.features.jobs.column_guess import guesses
from holdfast.features.jobs.new_jobs import FileChoice
from holdfast.features.jobs.scoped_job import require_capacity
from holdfast.features.library.file_library import table_options
from holdfast.features.library.images import image_row, is_image
from holdfast.features.switches.flags import Flag
from holdfast.kernel.arrivals.adding import added_words, require_open
from holdfast.kernel.jobs.control import JobRequest
from holdfast.model import ItemStatus, Job, Outcome
from holdfast.pipeline import Pipeline
from holdfast.server.context import Visit, Visitor
from holdfast.server.formatting import parsed
from holdfast.server.forms import OperatorPost, fields, whole_number
from holdfast.server.identity import ip_of
from holdfast.server.shapes import Id

router = APIRouter(prefix="/new")

_RECENT_FILES = 8
_SHOWN_IMAGES = 60
_OPTION = "option:"  # prefix of the form's field for a declared option
_NAME = "name:"  # prefix of the form's field for a column's new name

PipelineName = Annotated[str, Query(max_length=200)]


@router.get("")
async def choose(visit: Visitor, pipeline: PipelineName = "", into: Id | None = None) -> Response:
    """Lets the person choose a pipeline, and a file unless it finds its own records; or only a
    file, for the standing job `into`."""
    visit.person.require_change()
    parts = visit.parts
    job = into and await _standing(visit, into)
    chosen = _chosen(visit, job.pipeline if job else pipeline)
    return await visit.page(
        "new_job.html",
        here="jobs",
        pipelines=parts.new_jobs.startable,
        planning=[known for known in parts.pipelines.values() if known.plans],
        chosen=chosen,
        into=job,
        standing=chosen and await parts.new_jobs.standing_job(chosen.name, visit.person),
        files=await parts.console.files.page(visit.person.scope, _RECENT_FILES),
        ingest=await parts.flags.is_on(Flag.INGEST),
        max_bytes=parts.options.max_upload_bytes,
    )


@router.get("/files/{file_id}")
async def preview_file(
    file_id: Id,
    visit: Visitor,
    pipeline: PipelineName = "",
    encoding: Annotated[str, Query(max_length=40)] = "",
    delimiter: Annotated[str, Query(max_length=10)] = "",
    sheet: Annotated[str, Query(max_length=100)] = "",
    header_row: Annotated[str, Query(max_length=7)] = "",
    into: Id | None = None,
) -> Response:
    """Shows what was detected in a stored file, its first rows, and its columns to confirm."""
    visit.person.require_change()
    if into:
        pipeline = (await _standing(visit, into)).pipeline
    recipe = _require_chosen(visit, pipeline)
    delimiter = "\t" if delimiter == "\\t" else delimiter
    table = {
        "encoding": encoding,
        "delimiter": delimiter,
        "sheet": sheet,
        "header_row": header_row,
    }
    file = await visit.parts.console.files.file(file_id, visit.person.scope)
    if is_image(file):
        return visit.go(f"/new/images?files={file_id}&pipeline={quote(recipe.name)}")
    given = table_options(table)
    preview = await visit.parts.library.preview(file, given)
    return await visit.page(
        "new_job_file.html",
        here="jobs",
        file=file,
        preview=preview,
        recipe=recipe,
        names=_names(visit),
        guesses=guesses(preview.detected["columns"], preview.rows, recipe.inputs),
        table=table,
        into=into,
        standing=into or await visit.parts.new_jobs.standing_job(recipe.name, visit.person),
    )


@router.get("/images")
async def preview_images(
    visit: Visitor,
    files: Annotated[str, Query(max_length=20_000, pattern=r"^[0-9]{1,15}(,[0-9]{1,15})*$")],
    pipeline: PipelineName = "",
) -> Response:
    """Shows stored images, before a job is created from them."""
    visit.person.require_change()
    ids = [int(file_id) for file_id in files.split(",")]
    images = await visit.parts.library.images(ids, visit.person.scope)
    return await visit.page(
        "new_job_images.html",
        here="jobs",
        images=[image_row(image) for image in images],
        most_shown=_SHOWN_IMAGES,
        files=files,
        recipe=_require_chosen(visit, pipeline),
        names=_names(visit),
    )


@router.post("/try")
async def dry_run(visit: OperatorPost) -> Response:
    """Processes the first rows without storing anything."""
    form = await fields(visit.request)
    request = _request(visit, form)
    tried = await visit.parts.new_jobs.dry_run(request, visit.person, _choice(form))
    rows = [_tried_row(outcome) for _, outcome in tried]
    columns = request.pipeline.columns or _result_columns(rows)
    return visit.part("parts/dry_run.html", rows=rows, columns=columns)


@router.post("", dependencies=[Depends(require_capacity)])
async def start(visit: OperatorPost) -> Response:
    form = await fields(visit.request)
    job_id = await visit.parts.new_jobs.start(_request(visit, form), visit.person, _choice(form))
    return visit.go(f"/jobs/{job_id}")


@router.post("/add")
async def add(visit: OperatorPost) -> Response:
    """Adds the rows of a stored file to the person's standing job."""
    form = await fields(visit.request)
    job = await visit.parts.console.jobs.job(whole_number(form.get("job")) or 0, visit.person.scope)
    choice, key = _choice(form), form.get("key", "")
    added = AddedFiles(visit.parts.new_jobs, visit.parts.adding)
    enqueued, _ = await added.add_stored(
        job, choice, visit.person, choice.columns.get(key, key) or None
    )
    return visit.go(f"/jobs/{job.id}", added_words(enqueued.accepted, enqueued.known))


async def _standing(visit: Visit, job_id: int) -> Job:
    job = await visit.parts.console.jobs.job(job_id, visit.person.scope)
    require_open(job)
    return job


def _names(visit: Visit) -> list[str]:
    return sorted(pipeline.name for pipeline in visit.parts.new_jobs.startable)


def _chosen(visit: Visit, name: str) -> Pipeline | None:
    if name:
        return visit.parts.new_jobs.startable_pipeline(name)
    return next(iter(visit.parts.new_jobs.startable), None)


def _require_chosen(visit: Visit, name: str) -> Pipeline:
    pipeline = _chosen(visit, name)
    if pipeline is None:
        raise UserError(
            "this server has no pipeline to start", "Start the server with PIPELINE.py."
        )
    return pipeline


def _request(visit: Visit, form: dict[str, str]) -> JobRequest:
    return JobRequest(
        visit.parts.new_jobs.pipeline(form.get("pipeline", "")),
        _declared_options(form),
        standing=form.get("standing") == "on",
        max_items=whole_number(form.get("max_items")),
        ip=ip_of(visit.request),
    )


def _choice(form: dict[str, str]) -> FileChoice:
    names = {
        column: name.strip()
        for column, name in _with_prefix(form, _NAME).items()
        if name.strip() not in ("", column)
    }
    ids = f"{form.get('file_id', '')},{form.get('image_ids', '')}".split(",")
    return FileChoice(
        [whole_number(file_id) or 0 for file_id in ids if file_id],
        table=table_options(form),
        columns=names,
        columns_are_confirmed=True,
    )


def _declared_options(form: dict[str, str]) -> dict[str, Any]:
    """Returns the declared options; an empty field means that the option is not given."""
    return {name: value for name, value in _with_prefix(form, _OPTION).items() if value != ""}


def _with_prefix(form: dict[str, str], prefix: str) -> dict[str, str]:
    return {
        name.removeprefix(prefix): value for name, value in form.items() if name.startswith(prefix)
    }


def _tried_row(outcome: Outcome) -> dict[str, Any]:
    result = parsed(outcome.result) or {}
    return {
        "status": outcome.status,
        "retried": outcome.status is ItemStatus.PENDING,
        "result": result if isinstance(result, dict) else {"result": result},
        "error": f"{outcome.error_code or ''} {outcome.error_message or ''}".strip(),
        "seconds": outcome.seconds,
    }


def _result_columns(rows: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row["result"]))
