"""Reads the links of a project in batches, for QuickStatements."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace

import orjson

from holdfast.errors import UserError
from holdfast.pipeline import Fetch, Row
from holdfast_linker.entities import Kind
from holdfast_linker.options import WIKIDATA
from holdfast_linker.projects import Project
from holdfast_linker.quickstatements import Link, Style, statements
from holdfast_linker.stored_forms import entry_from
from holdfast_linker.tasks import TaskState

_PAGE = 500
_DATATYPES = {
    Kind.ITEM: "wikibase-item",
    Kind.QUANTITY: "quantity",
    Kind.PLACE: "globe-coordinate",
    Kind.DATE: "time",
}
#: Datatypes of properties that linked items may not have yet. All others are learned from those
#: that do.
_KNOWN = {
    **dict.fromkeys(("P31", "P106", "P27", "P17"), "wikibase-item"),
    **dict.fromkeys(("P569", "P570", "P571", "P577"), "time"),
    "P625": "globe-coordinate",
}


def require_wikidata(project: Project) -> None:
    if project.rules.provider != WIKIDATA:
        raise UserError(
            f"the items of {project.name} are not Wikidata's, so there are no QuickStatements",
            "Export the results as CSV, XLSX or JSON instead.",
        )


async def statement_lines(fetch: Fetch, project: Project, style: Style) -> AsyncGenerator[str]:
    """Yields statements for entries that were linked, by a person or without one, and those that
    people said are new."""
    datatypes = dict(_KNOWN)
    position = {"job_id": 0, "seq": 0}
    while rows := await fetch(
        "linker_links", {"project_id": project.id, "limit": _PAGE, **position}
    ):
        datatypes |= await _datatypes(fetch, project, rows)
        links = [
            Link(entry_from(orjson.loads(row["entry"]), row["key"]), row["item"])
            for row in rows
            if row["item"] is not None or row["state"] == TaskState.REVIEWED
        ]
        for line in statements(links, replace(style, datatypes=datatypes)):
            yield f"{line}\n"
        position = {"job_id": rows[-1]["job_id"], "seq": rows[-1]["seq"]}


async def _datatypes(fetch: Fetch, project: Project, rows: Sequence[Row]) -> dict[str, str]:
    """Returns the datatypes of properties that these items have: a text cannot be the value of one
    for items."""
    ids = sorted({row["item"] for row in rows if row["item"] is not None})
    params = {"space": project.rules.provider, "project_id": project.id, "ids": ids}
    entities = await fetch("linker_entities_by_id", params) if ids else []
    return {
        property_id: _DATATYPES[Kind(form[0])]
        for entity in entities
        for property_id, forms in orjson.loads(entity["data"])["values"].items()
        for form in forms
        if form[0] in _DATATYPES
    }
