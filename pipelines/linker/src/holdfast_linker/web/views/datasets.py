"""Adds a dataset: the first rows of a stored file, and what each column says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Response

from holdfast.errors import UserError
from holdfast.server.context import Visitor
from holdfast.server.forms import OperatorPost, fields
from holdfast.server.identity import ip_of
from holdfast.server.shapes import Id
from holdfast_linker.entries import ColumnMapping
from holdfast_linker.guessing import guess_mapping
from holdfast_linker.knowing import PROPERTIES, TYPES
from holdfast_linker.web.api import projects as api
from holdfast_linker.web.api.datasets import add_stored
from holdfast_linker.web.api.shapes import NewDataset, own_project
from holdfast_linker.web.views.projects import path_of

router = APIRouter(prefix="/linker/projects/{project_id}/datasets")

_SHOWN_ROWS = 6
_ROLE, _PROPERTY = "role:", "property:"  # prefixes of a column's two fields
#: What a column may say, as values of the form: one thing, or a property.
_SINGLE = ("id", "name", "type")
_PLURAL = {"date": "dates", "identifier": "identifiers", "property": "properties"}
_ROLES = {
    "": "not used",
    "name": "name",
    "aliases": "other names",
    "id": "id of the entry",
    "type": "type",
    "date": "date",
    "identifier": "identifier",
    "property": "other property",
}


@router.get("/{file_id}")
async def columns(project_id: Id, file_id: Id, visit: Visitor) -> Response:
    project = await own_project(project_id, visit.person, visit.parts)
    file = await visit.parts.console.files.file(file_id, visit.person.scope)
    preview = await visit.parts.library.preview(file, {})
    names = list(preview.detected.get("columns", ()))
    if not names:
        raise UserError(
            f"{file.name} is not a table", "Choose a CSV, TSV, XLSX or JSON Lines file."
        )
    mapping = guess_mapping(names)
    return await visit.page(
        "linker/columns.html",
        here="linker",
        project=project,
        at=path_of(project.id),
        file=file,
        guesses=[(name, *_guess(name, mapping)) for name in names],
        rows=preview.rows[:_SHOWN_ROWS],
        roles=_ROLES,
        properties=PROPERTIES,
        types=TYPES,
    )


def _guess(column: str, mapping: ColumnMapping | None) -> tuple[str, str]:
    """Returns the role of a column and its property, as far as its name tells."""
    if mapping is None:
        return "", ""
    for role in _SINGLE:
        if getattr(mapping, role) == column:
            return role, ""
    for role, part in _PLURAL.items():
        if column in getattr(mapping, part):
            return role, getattr(mapping, part)[column]
    return ("aliases", "") if column in mapping.aliases else ("", "")


@router.post("/{file_id}")
async def add(project_id: Id, file_id: Id, visit: OperatorPost) -> Response:
    project = await own_project(project_id, visit.person, visit.parts)
    form = await fields(visit.request)
    body = NewDataset(file_id=file_id, mapping=_mapping(form))
    name = await add_stored(project, body, visit.person, visit.parts)
    if form.get("match"):
        await api.match_project(project, ip_of(visit.request), visit.person, visit.parts)
        return visit.go(path_of(project_id), f"{name} was added and is being matched.")
    return visit.go(path_of(project_id), f"{name} was added. Press Match to match its entries.")


def _mapping(form: Mapping[str, str]) -> dict[str, Any]:
    """Returns what the form says, as `read_mapping` reads it."""
    mapping: dict[str, Any] = {"all_of_type": form.get("all_of_type", "").strip() or None}
    for field, role in form.items():
        column = field.removeprefix(_ROLE)
        if column == field or not role:
            continue
        if role in _PLURAL:
            property_id = form.get(f"{_PROPERTY}{column}", "").strip()
            mapping.setdefault(_PLURAL[role], {})[column] = property_id
        elif role == "aliases":
            mapping.setdefault(role, []).append(column)
        elif mapping.setdefault(role, column) != column:
            raise UserError(
                f"two columns have the role {_ROLES.get(role, role)!r}: {mapping[role]!r} and"
                f" {column!r}",
                "Choose one of them.",
            )
    return mapping
