"""Records for a standing job, answered after they are stored."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query, Request
from pydantic import Field

from holdfast.api.dependencies import Parts
from holdfast.api.idempotency import IdempotentRoute, request_key
from holdfast.api.identity import Operator, PartsOf
from holdfast.api.jobs import ScopedJob
from holdfast.api.problems import Malformed, WrongType
from holdfast.api.shapes import Shape, Text
from holdfast.console.person import Person
from holdfast.engine.adding import Adding, Records
from holdfast.store.enqueue import MAX_INPUT_BYTES

_MOST_ROWS = 10_000
_LINES = ("application/x-ndjson", "application/jsonl", "application/x-jsonlines")


class Added(Shape):
    job_id: int
    accepted: int | None = Field(description="New items; null if the response is a repeated one.")
    known: int | None = Field(description="Records whose key was known.")


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
    """A JSON array of objects, or JSON lines; at most 10,000. Responds when they are stored. With
    an `Idempotency-Key`, a request that is sent again adds nothing."""
    records = Records(_rows(await request.body(), request), key, run_at)
    most_items = parts.console.quotas.limits.items
    enqueued = await adding_of(parts).add(job, records, request_key(request), most_items)
    return Added(**enqueued._asdict())


def adding_of(parts: Parts) -> Adding:
    return Adding(parts.store, parts.pipelines, MAX_INPUT_BYTES, parts.log)


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
    if not isinstance(rows, list) or len(rows) > _MOST_ROWS:
        raise Malformed(f"the body is not an array of at most {_MOST_ROWS:,} objects")
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
