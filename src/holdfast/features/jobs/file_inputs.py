"""Requests that name a file and how it is read: as JSON, or as a form that includes the file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

import orjson
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import Field, ValidationError

from holdfast.errors import UserError
from holdfast.features.jobs.new_jobs import FileChoice
from holdfast.features.library.file_library import HEADER_ROW, TABLE_OPTIONS
from holdfast.server.problems import Malformed, WrongType
from holdfast.server.shapes import Id, Shape, Text

S = TypeVar("S", bound=Shape)
_JSON_FIELDS = ("options", "columns")

#: Fields of the form: the same as in FileInput.
TABLE_FIELDS = {
    "encoding": {"type": "string"},
    "delimiter": {"type": "string"},
    "sheet": {"type": "string"},
    "headerRow": {"type": "integer", "description": HEADER_ROW},
    "columns": {"type": "string", "description": "JSON"},
}


class FileInput(Shape):
    file_id: Id | None = Field(default=None, description="A stored file.", examples=[3])
    path: Text | None = Field(
        default=None, description="A file on the server, under one of HOLDFAST_FILE_ROOTS."
    )
    bucket_key: Text | None = Field(
        default=None,
        description="An object as BUCKET/KEY, in one of HOLDFAST_FILE_BUCKETS.",
        examples=["incoming/suppliers/march.csv"],
    )
    encoding: Annotated[str, Field(max_length=40)] | None = None
    delimiter: Annotated[str, Field(max_length=10)] | None = None
    sheet: Annotated[str, Field(max_length=100)] | None = None
    header_row: int | None = Field(default=None, ge=0, le=1_000_000, description=HEADER_ROW)
    columns: dict[str, Text] = Field(
        default_factory=dict,
        description="Columns of the file to fields of the pipeline. Others are matched by name.",
        examples=[{"Product title": "title"}],
    )

    @property
    def table(self) -> dict[str, Any]:
        """The options of the table; an empty text means that the option is not given."""
        options = {name: getattr(self, name) for name in TABLE_OPTIONS}
        return {name: value for name, value in options.items() if value not in (None, "")}

    def require_one(self, names: str, *others: Any) -> None:
        given = (self.file_id, self.path, self.bucket_key, *others)
        if sum(value is not None for value in given) > 1:
            raise UserError(f"give only one of {names}")


def choice_of(body: FileInput, file_ids: Sequence[int] = ()) -> FileChoice:
    return FileChoice(
        file_ids if body.file_id is None else [body.file_id],
        path=body.path,
        bucket_key=body.bucket_key,
        table=body.table,
        columns=body.columns,
    )


async def json_of(request: Request) -> Any:
    try:
        return orjson.loads(await request.body())
    except orjson.JSONDecodeError as error:
        raise Malformed(f"the body is not valid JSON: {error}") from error


def form_fields(fields: dict[str, str]) -> dict[str, Any]:
    """Parses the fields; some come as JSON text."""
    body: dict[str, Any] = {name: value for name, value in fields.items() if value != ""}
    for name in [name for name in _JSON_FIELDS if name in body]:
        try:
            body[name] = orjson.loads(body[name])
        except orjson.JSONDecodeError as error:
            raise Malformed(f"the field `{name}` is not valid JSON: {error}") from error
    return body


def validated(shape: type[S], body: Any) -> S:
    try:
        return shape.model_validate(body)
    except ValidationError as error:
        errors = [{**item, "loc": ("body", *item["loc"])} for item in error.errors()]
        raise RequestValidationError(errors) from error


def neither_json_nor_form() -> WrongType:
    return WrongType(
        "the body is neither JSON nor a form",
        "Send application/json, or multipart/form-data with the file as `file`.",
    )
