"""Datasets: a file and what its columns say, in one request."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import orjson
from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from holdfast.errors import UserError
from holdfast.features.library.uploads import FILE_FIELDS, received_file, store_received
from holdfast.server.dependencies import Parts
from holdfast.server.identity import Operator, PartsOf, Person
from holdfast.server.multipart import Form
from holdfast.server.problems import Malformed
from holdfast_linker.entries import ColumnMapping, read_mapping
from holdfast_linker.guessing import guess_mapping
from holdfast_linker.projects import Project, add_dataset
from holdfast_linker.web.api.figures import describe_project
from holdfast_linker.web.api.shapes import NewDataset, OwnProject, ProjectShape

PATH = "/api/projects/{project_id}/datasets"
router = APIRouter(tags=["linker"])

_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        **FILE_FIELDS,
                        "mapping": {"type": "string", "description": "JSON"},
                        "name": {"type": "string"},
                    },
                }
            },
            "application/json": {"schema": NewDataset.model_json_schema(by_alias=True)},
        },
    }
}


@router.post(PATH, status_code=201, summary="Add a dataset to a project", openapi_extra=_BODY)
async def add(
    project: OwnProject, request: Request, person: Operator, parts: PartsOf
) -> ProjectShape:
    """The file comes in a form, with `mapping` as JSON, or is named in JSON by the `fileId` of one
    that is stored. Its columns are checked now; `POST /api/projects/{project_id}/match` matches its
    entries."""
    kind = request.headers.get("content-type", "").lower()
    if kind.startswith("multipart/form-data"):
        async with received_file(request, parts) as form:
            await _add_uploaded(project, form, person, parts)
    else:
        body = _validated(_parsed(await request.body(), "the body"))
        await add_stored(project, body, person, parts)
    return await describe_project(project, parts)


async def add_stored(project: Project, body: NewDataset, person: Person, parts: Parts) -> str:
    """Adds a stored file; returns the name of the dataset."""
    file = await parts.console.files.file(body.file_id, person.scope)
    await _add(project, body, file.name, file.detected, person, parts)
    return body.name or file.name


async def _add_uploaded(project: Project, form: Form, person: Person, parts: Parts) -> None:
    """Adds a file from a form; one whose columns cannot be used is not stored."""
    mapping = form.fields.get("mapping", "").strip()
    given = {
        "name": form.fields.get("name") or None,
        "mapping": _parsed(mapping.encode(), "the mapping") if mapping else None,
    }
    _validated({"fileId": 1, **given})  # before anything is stored
    file = await store_received(form, person, parts)
    body = _validated({"fileId": file.id, **given})
    try:
        await _add(project, body, file.name, file.detected, person, parts)
    except UserError:
        with suppress(UserError):
            await parts.deletions.delete_file(file.id, None, person.name)
        raise


async def _add(
    project: Project,
    body: NewDataset,
    name: str,
    detected: Mapping[str, Any],
    person: Person,
    parts: Parts,
) -> None:
    mapping = _mapping(body, list(detected.get("columns", ())))
    change = add_dataset(project, body.name or name, body.file_id, mapping)
    await parts.control(person.name).change(change)


def _parsed(text: bytes, what: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise Malformed(f"{what} is not valid JSON: {error}") from error


def _validated(given: Any) -> NewDataset:
    try:
        return NewDataset.model_validate(given)
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from error


def _mapping(body: NewDataset, columns: list[str]) -> ColumnMapping:
    if body.mapping is not None:
        return read_mapping(body.mapping, columns)
    guessed = guess_mapping(columns)
    if guessed is None:
        raise UserError(
            "no column looks like one with names",
            f"Send a mapping. Columns: {', '.join(columns[:20])}.",
        )
    return guessed
