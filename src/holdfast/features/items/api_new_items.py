"""Adds records to a standing job; responds after they are stored."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query, Request
from pydantic import Field

from holdfast.features.accounts.person import Person
from holdfast.features.jobs.added_files import AddedFiles
from holdfast.features.jobs.file_inputs import (
    TABLE_FIELDS,
    FileInput,
    choice_of,
    form_fields,
    json_of,
    neither_json_nor_form,
    validated,
)
from holdfast.features.jobs.scoped_job import ScopedJob
from holdfast.features.switches.flags import Flag
from holdfast.kernel.arrivals.adding import require_open
from holdfast.model import Job
from holdfast.server.dependencies import Parts
from holdfast.server.idempotency import IdempotentRoute, request_key
from holdfast.server.identity import Operator, PartsOf
from holdfast.server.multipart import received_form, require_file
from holdfast.server.problems import Malformed, WrongType
from holdfast.server.shapes import Shape, Text
from holdfast_client.adding import Enqueued

_MOST_ROWS = 10_000
_ONE_FILE = "fileId, path and bucketKey"
_LINES = ("application/x-ndjson", "application/jsonl", "application/x-jsonlines")


class Added(Shape):
    job_id: int
    accepted: int | None = Field(description="New items; null if the response is a repeated one.")
    known: int | None = Field(description="Records whose key was known.")


class NewRows(FileInput):
    key: Text | None = Field(default=None, description="The field whose value is the key.")


class AddedFile(Added):
    read_as: list[str] | None = Field(
        default=None, description="What was detected and assumed about the file, in sentences."
    )


class _AddRoute(IdempotentRoute):
    async def describe(self, request: Request, person: Person, made: int) -> str:
        return Added(job_id=made, accepted=None, known=None).model_dump_json(by_alias=True)


router = APIRouter(prefix="/api/jobs/{jobId}", tags=["items"], route_class=_AddRoute)

_RECORD = {"type": "object"}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"type": "array", "maxItems": _MOST_ROWS, "items": _RECORD}
            },
            "application/x-ndjson": {"schema": {"type": "string"}},
        },
    }
}
_FILE_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": NewRows.model_json_schema(by_alias=True)},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        "key": {"type": "string"},
                        **TABLE_FIELDS,
                    },
                }
            },
        },
    }
}


@router.post(
    "/items", status_code=201, summary="Add records to a standing job", openapi_extra=_BODY
)
async def add(
    request: Request,
    job: ScopedJob,
    person: Operator,
    parts: PartsOf,
    key: Annotated[Text | None, Query(description="The field whose value is the key.")] = None,
    run_at: Annotated[
        datetime | None, Query(alias="runAt", description="Not to be processed before.")
    ] = None,
) -> Added:
    """The body is a JSON array of objects, or JSON lines; at most 10,000 records.

    Responds when they are stored. With an `Idempotency-Key`, a request that is sent again adds
    nothing."""
    adding, most_items = parts.adding, parts.console.quotas.limits.items
    addition = adding.addition(job, _rows(await request.body(), request), key, run_at)
    enqueued = await adding.add(addition, request_key(request), most_items)
    return Added(**enqueued._asdict())


@router.post(
    "/files",
    status_code=201,
    summary="Add the rows of a file to a standing job",
    openapi_extra=_FILE_BODY,
)
async def add_file(request: Request, job: ScopedJob, person: Operator, parts: PartsOf) -> AddedFile:
    """The file is uploaded, stored, on the server or in a bucket, and has at most 10,000 rows.

    Responds when they are stored; all of them, or none."""
    require_open(job)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        body = validated(NewRows, await json_of(request))
        body.require_one(_ONE_FILE)
        enqueued, read_as = await added_files(parts).add_stored(
            job, choice_of(body), person, body.key, request_key(request)
        )
    elif kind == "multipart/form-data":
        enqueued, read_as = await _add_form(request, job, parts)
    else:
        raise neither_json_nor_form()
    return AddedFile(**enqueued._asdict(), read_as=read_as)


async def _add_form(request: Request, job: Job, parts: Parts) -> tuple[Enqueued, list[str]]:
    """Adds the rows of a form's file, which is not stored itself."""
    await parts.flags.require(Flag.INGEST)
    async with received_form(request, parts.library.access) as form:
        body, received = validated(NewRows, form_fields(form.fields)), require_file(form)
        body.require_one(_ONE_FILE)
        path, key = received.under_its_name().path, request_key(request)
        return await added_files(parts).add(job, path, choice_of(body), body.key, key)


def added_files(parts: Parts) -> AddedFiles:
    return AddedFiles(parts.new_jobs, parts.adding)


def _rows(body: bytes, request: Request) -> list[Any]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        if kind in _LINES:
            rows = _lines(body)
        elif kind == "application/json":
            rows = orjson.loads(body)
        else:
            raise WrongType(
                "the body is neither a JSON array nor JSON lines",
                "Send application/json, or application/x-ndjson.",
            )
    except orjson.JSONDecodeError as error:
        raise Malformed(f"the body is not valid JSON: {error}") from error
    if not isinstance(rows, list):
        raise Malformed("the body is not an array", "Send [{...}], or JSON lines.")
    if len(rows) > _MOST_ROWS:
        raise Malformed(
            f"the body has {len(rows):,} records, more than {_MOST_ROWS:,}",
            "Nothing was added. Send them in several requests.",
        )
    return rows


def _lines(body: bytes) -> list[Any]:
    rows = []
    for number, line in enumerate(body.splitlines(), start=1):
        try:
            if line.strip():
                rows.append(orjson.loads(line))
        except orjson.JSONDecodeError as error:
            raise Malformed(
                f"line {number} of the body is not valid JSON: {error.msg}",
                "Nothing was added. Send one object in each line.",
            ) from error
    return rows
