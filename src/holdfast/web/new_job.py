"""A new job: what a file holds, which column is what, a dry run, then the start."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import orjson
from fastapi import APIRouter, Depends, Query, Response

from holdfast.api import files
from holdfast.api.files import PreviewedFile
from holdfast.api.flags import Flag, is_on, require_flag
from holdfast.api.identity import ip_of
from holdfast.api.images import IMAGE, IMAGE_LIST, is_image, listed, row_of
from holdfast.api.jobs import refuse_under_pressure
from holdfast.api.pipelines import pipeline_named
from holdfast.api.shapes import Id
from holdfast.console.files import StoredFile
from holdfast.engine.control import Asked, Caps, refuse_planning
from holdfast.engine.control import options_of as job_options
from holdfast.engine.dry_run import dry_run
from holdfast.errors import NotAllowed, UserError
from holdfast.model import ItemStatus, Job, JobState, Outcome
from holdfast.pipeline import Pipeline
from holdfast.web.column_guess import Guess, guesses
from holdfast.web.forms import whole_number
from holdfast.web.visit import Changing, Visit, Visitor, fields

router = APIRouter(prefix="/new")

_TRIED_ROWS = 5
_RECENT_FILES = 8
_MOST_IMAGES = 1000
_SHOWN_IMAGES = 60
_TABLE = ("encoding", "delimiter", "sheet")
_OPTION = "option:"  # the form's field for a declared option begins so
_NAME = "name:"  # the form's field for a column's new name begins so
_NO_JOB = 0


@dataclass(frozen=True, slots=True)
class Order:
    """What the form asks for."""

    pipeline: Pipeline
    file_id: int | None
    image_ids: list[int]
    table: dict[str, Any]
    options: dict[str, Any]
    max_items: int | None


@router.get("")
async def choose(visit: Visitor, pipeline: Annotated[str, Query(max_length=200)] = "") -> Response:
    """A pipeline, and a file for it, or what it finds by itself."""
    _require_changing(visit)
    found = await visit.parts.console.files.page(visit.person.scope, _RECENT_FILES)
    offered = _offered(visit)
    return await visit.page(
        "new_job.html",
        here="jobs",
        pipelines=[visit.parts.pipelines[name] for name in offered],
        chosen=pipeline or next(iter(offered), ""),
        files=found,
        ingest=await is_on(visit.parts, Flag.INGEST),
        most=visit.parts.options.max_upload_bytes,
    )


@router.get("/files/{file_id}")
async def look(
    file_id: Id,
    visit: Visitor,
    pipeline: Annotated[str, Query(max_length=200)] = "",
    encoding: Annotated[str, Query(max_length=40)] = "",
    delimiter: Annotated[str, Query(max_length=10)] = "",
    sheet: Annotated[str, Query(max_length=100)] = "",
) -> Response:
    """What was detected in a stored file, its first rows, and the columns to confirm."""
    _require_changing(visit)
    names = sorted(_offered(visit))
    recipe = pipeline_named(pipeline or next(iter(names), ""), visit.parts)
    delimiter = "\t" if delimiter == "\\t" else delimiter
    file = await files.show(
        file_id, visit.person, visit.parts, encoding or None, delimiter or None, sheet or None
    )
    if file.detected["format"] == IMAGE:
        return visit.go(f"/new/images?files={file_id}&pipeline={quote(recipe.name)}")
    return await visit.page(
        "new_job_file.html",
        here="jobs",
        file=file,
        recipe=recipe,
        names=names,
        guesses=_guesses(file, recipe),
        said={"encoding": encoding, "delimiter": delimiter, "sheet": sheet},
    )


@router.get("/images")
async def look_at_images(
    visit: Visitor,
    files: Annotated[str, Query(max_length=20_000, pattern=r"^[0-9]{1,15}(,[0-9]{1,15})*$")],
    pipeline: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Stored images, to be looked at before a job is made of them."""
    _require_changing(visit)
    names = sorted(_offered(visit))
    recipe = pipeline_named(pipeline or next(iter(names), ""), visit.parts)
    ids = [int(each) for each in files.split(",")]
    images = [row_of(each) for each in await _images(visit, ids)]
    told = {"images": images, "files": files, "recipe": recipe, "names": names}
    return await visit.page("new_job_images.html", here="jobs", shown=_SHOWN_IMAGES, **told)


@router.post("/try")
async def try_out(visit: Changing) -> Response:
    """The first rows, worked on without keeping anything."""
    order = await _ordered(visit)
    refuse_planning(order.pipeline)
    if order.image_ids:
        images = await _images(visit, order.image_ids[:_TRIED_ROWS])
        rows = [orjson.dumps(row_of(each)).decode() for each in images]
    elif order.file_id is not None:
        file = await _stored(visit, order.file_id)
        rows = await _first_rows(visit, Path(file.path), order.table)
    else:
        raise UserError("a dry run needs a file")
    job = Job(
        _NO_JOB,
        order.pipeline.name,
        "dry run",
        JobState.RUNNING,
        owner_id=visit.person.name,
        options=job_options(order.pipeline, order.options)
        | ({"_images": True} if order.image_ids else {}),
    )
    await visit.parts.control(visit.person.name).prepare(order.pipeline)
    worker = visit.parts.new_worker(_NO_JOB)
    outcomes = await dry_run(visit.parts.store, worker, order.pipeline, job, rows)
    tried = [_told(each, row) for each, row in zip(outcomes, rows, strict=True)]
    columns = order.pipeline.columns or _columns(tried)
    return visit.part("parts/tried.html", tried=tried, columns=columns)


@router.post(
    "",
    dependencies=[Depends(refuse_under_pressure)],
)
async def start(visit: Changing) -> Response:
    order = await _ordered(visit)
    control = visit.parts.control(visit.person.name)
    caps = Caps(order.max_items)
    ip = ip_of(visit.request)
    file = await _taken_in(visit, order)
    if file is None:
        job_id = await control.start_discovery(
            order.pipeline,
            order.options,
            caps=caps,
            asked=Asked(ip, by_admin=visit.person.is_admin),
        )
        return visit.go(f"/jobs/{job_id}")
    job_id = await control.start_upload(
        order.pipeline,
        Path(file.path),
        file.sha256,
        order.table,
        order.options,
        caps,
        asked=Asked(ip, file.id),
        images=file.kind == IMAGE_LIST,
    )
    return visit.go(f"/jobs/{job_id}")


async def _taken_in(visit: Visit, order: Order) -> StoredFile | None:
    """The file whose rows the job takes in, if it is one over a file or images."""
    if order.file_id is None and not order.image_ids:
        return None
    await require_flag(Flag.INGEST)(visit.parts)
    if order.image_ids:
        return await listed(await _images(visit, order.image_ids), visit.person, visit.parts)
    file = await _stored(visit, order.file_id or 0)
    await files.require_readable(file, order.table, visit.parts)
    return file


def options_of(text: str) -> dict[str, Any]:
    """One NAME=VALUE a line; a value that is JSON counts as such."""
    options: dict[str, Any] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, equals, value = line.partition("=")
        if not equals or not name.strip() or name.strip().startswith("_"):
            raise UserError(f"the option {line!r} is not understood", "One NAME=VALUE a line.")
        try:
            options[name.strip()] = orjson.loads(value)
        except orjson.JSONDecodeError:
            options[name.strip()] = value.strip()
    return options


def _declared(form: dict[str, str]) -> dict[str, Any]:
    """Options that the pipeline declares have fields of their own; an empty one is not given."""
    return {
        field.removeprefix(_OPTION): value
        for field, value in form.items()
        if field.startswith(_OPTION) and value != ""
    }


async def _ordered(visit: Visit) -> Order:
    form = await fields(visit.request)
    table: dict[str, Any] = {name: form[name] for name in _TABLE if form.get(name)}
    names = {
        field.removeprefix(_NAME): value.strip()
        for field, value in form.items()
        if field.startswith(_NAME) and value.strip() not in ("", field.removeprefix(_NAME))
    }
    if names:
        table["names"] = names
    return Order(
        pipeline_named(form.get("pipeline", ""), visit.parts),
        whole_number(form.get("file_id")),
        [whole_number(each) or 0 for each in form.get("image_ids", "").split(",") if each],
        table,
        _declared(form) | options_of(form.get("options", "")),
        whole_number(form.get("max_items")),
    )


async def _images(visit: Visit, ids: list[int]) -> list[StoredFile]:
    if len(ids) > _MOST_IMAGES:
        raise UserError(f"more than {_MOST_IMAGES:,} images are chosen", "Make several jobs.")
    files = visit.parts.console.files
    found = [await files.file(each, visit.person.scope) for each in dict.fromkeys(ids)]
    tables = [file.name for file in found if not is_image(file)]
    if tables:
        raise UserError(f"{tables[0]} is no image", "Make a job over one table, or over images.")
    return found


async def _stored(visit: Visit, file_id: int) -> StoredFile:
    file = await visit.parts.console.files.file(file_id, visit.person.scope)
    await files.require_in_place(file, visit.parts)
    return file


async def _first_rows(visit: Visit, path: Path, table: dict[str, Any]) -> list[str]:
    _, rows = await files.looked_into(path, table, visit.parts)
    return [orjson.dumps(row).decode() for row in rows[:_TRIED_ROWS]]


def _guesses(file: PreviewedFile, pipeline: Pipeline) -> list[Guess]:
    return guesses(file.detected["columns"], file.rows, pipeline.inputs)


def _told(outcome: Outcome, text: str) -> dict[str, Any]:
    result = orjson.loads(outcome.result) if outcome.result else {}
    again = outcome.status is ItemStatus.PENDING
    return {
        "status": outcome.status,
        "again": again,
        "result": result if isinstance(result, dict) else {"result": result},
        "error": f"{outcome.error_code or ''} {outcome.error_message or ''}".strip(),
        "seconds": outcome.seconds,
        "row": orjson.loads(text),
    }


def _columns(tried: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for each in tried for name in each["result"]))


def _offered(visit: Visit) -> list[str]:
    """The pipelines whose jobs are made here: others have pages of their own."""
    return [name for name, recipe in visit.parts.pipelines.items() if not recipe.plans]


def _require_changing(visit: Visit) -> None:
    if not visit.person.may_change:
        raise NotAllowed(f"{visit.person.name} may look, but change nothing", "Ask an admin.")
