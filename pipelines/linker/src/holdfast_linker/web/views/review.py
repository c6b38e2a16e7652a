"""The review page: one entry and its candidates side by side, decided with the keyboard."""

from __future__ import annotations

import math
from typing import Annotated, Any
from urllib.parse import quote_plus

from fastapi import APIRouter, Query, Response

from holdfast.errors import UserError
from holdfast.model import Json
from holdfast.server.context import Visit, Visitor
from holdfast.server.shapes import LARGEST_ID, Id
from holdfast_linker.knowing import TYPES
from holdfast_linker.options import WIKIDATA
from holdfast_linker.projects import Project
from holdfast_linker.reads import ReviewPosition, TaskFilter, position_of
from holdfast_linker.tasks import TaskState
from holdfast_linker.web.api.shapes import (
    Score,
    TaskDetail,
    may_change,
    reads_of,
    visible_project,
)
from holdfast_linker.web.api.tasks import describe_task

router = APIRouter(prefix="/linker/projects/{project_id}/review")

_PROPERTIES = {
    "name": "name", "type": "type", "P569": "born", "P570": "died", "P571": "founded",
    "P577": "published", "P106": "occupation", "P27": "citizenship", "P17": "country",
    "P214": "VIAF", "P213": "ISNI", "P227": "GND", "P345": "IMDb", "P496": "ORCID",
    "P625": "place", "P31": "instance of",
}  # fmt: skip
_AGREES, _CONTRADICTS = 80.0, 50.0
_SEARCH = "https://www.wikidata.org/w/index.php?ns0=1&search={}"
_KEYS = 9
State = Annotated[TaskState, Query()]
#: An empty field of the filter sets no bound.
Bound = Annotated[str, Query(max_length=20)]
Number = Annotated[int, Query(ge=0, le=LARGEST_ID)]


@router.get("")
async def page(
    project_id: Id,
    visit: Visitor,
    state: State = TaskState.AWAITING_REVIEW,
    low: Bound = "",
    high: Bound = "",
) -> Response:
    project = await visible_project(project_id, visit.person, visit.parts)
    wanted = TaskFilter(state, _bound(low, -1.0), _bound(high, 1000.0))
    counts = await reads_of(visit.parts).counts(project.id)
    return await visit.page(
        "linker/review.html",
        here="linker",
        project=project,
        at=f"/linker/projects/{project.id}",
        wanted=wanted,
        counts=counts,
        states=[str(each) for each in TaskState],
        reviewed=counts[TaskState.REVIEWED],
        **await _first(project, wanted, ReviewPosition(), visit),
    )


def _bound(text: str, otherwise: float) -> float:
    try:
        number = float(text) if text.strip() else otherwise
    except ValueError:
        number = math.nan
    if not -1 <= number <= 1000:
        raise UserError(f"{text!r} is not a score", "Scores are from 0 to 100.")
    return number


@router.get("/next")
async def following(
    project_id: Id,
    visit: Visitor,
    state: State = TaskState.AWAITING_REVIEW,
    low: Score = -1,
    high: Score = 1000,
    score: Score = 1000,
    job_id: Number = 0,
    seq: Number = 0,
) -> Response:
    """Returns the card of the first task after a position, in the order of review."""
    project = await visible_project(project_id, visit.person, visit.parts)
    position = ReviewPosition(score, job_id, seq)
    context = await _first(project, TaskFilter(state, low, high), position, visit)
    return visit.part("linker/card.html", project=project, **context)


@router.get("/{job_id}/{seq}")
async def card(project_id: Id, job_id: Id, seq: Id, visit: Visitor) -> Response:
    """Shows the card of one task, as it is now."""
    project = await visible_project(project_id, visit.person, visit.parts)
    task = await describe_task(project, job_id, seq, visit.parts)
    return visit.part("linker/card.html", project=project, **_card(project, task, visit))


async def _first(
    project: Project, wanted: TaskFilter, position: ReviewPosition, visit: Visit
) -> Json:
    tasks = await reads_of(visit.parts).tasks(project.id, wanted, position, 1)
    if not tasks:
        return {"task": None, "may_change": may_change(project, visit.person)}
    task = tasks[0]
    detail = await describe_task(project, task["job_id"], task["seq"], visit.parts)
    return _card(project, detail, visit)


def _card(project: Project, task: TaskDetail, visit: Visit) -> dict[str, Any]:
    is_wikidata = project.rules.provider == WIKIDATA
    return {
        "task": task,
        "place": position_of(task.model_dump()),
        "reason": _reason(task),
        "search_url": _SEARCH.format(quote_plus(task.name)) if is_wikidata and task.name else "",
        "given": _given(task.entry),
        "rows": _rows(task),
        "keys": _KEYS,
        "item_url": "https://www.wikidata.org/wiki/" if is_wikidata else "",
        "names": _PROPERTIES,
        "may_change": may_change(project, visit.person),
    }


def _reason(task: TaskDetail) -> str:
    """Returns what matching said, with the names of properties, as the table has them."""
    if task.state == TaskState.NO_CANDIDATES:
        return ""
    reason = " ".join(_PROPERTIES.get(word, word) for word in task.reason.split(" "))
    if task.state == TaskState.AWAITING_REVIEW:
        return f"Not accepted automatically: {reason}."
    return (
        f"Accepted automatically: {reason}." if task.state == TaskState.AUTO_CONFIRMED else reason
    )


def _given(entry: Json) -> list[tuple[str, str]]:
    """Returns field and text of what the entry says, in the order in which it is compared."""
    rows = [("name", entry["name"])] if entry["name"] else []
    rows += [("name", alias) for alias in entry["aliases"]]
    for part in ("dates", "identifiers", "properties"):
        rows += [(property_id, text) for property_id, text in entry[part]]
    kind = entry["type"]
    return rows + ([("type", f"{TYPES[kind]} ({kind})" if kind in TYPES else kind)] if kind else [])


def _rows(task: TaskDetail) -> list[dict[str, Any]]:
    """Returns, field by field, what the entry gives, and how each candidate compares."""
    fields = list(
        dict.fromkeys(f["field"] for candidate in task.candidates for f in candidate.fields)
    )
    given = _given(task.entry)
    return [
        {
            "field": field,
            "given": "; ".join(text for name, text in given if name == field),
            "cells": [_cell(candidate.fields, field) for candidate in task.candidates],
        }
        for field in fields
    ]


def _cell(fields: list[dict[str, Any]], field: str) -> dict[str, Any]:
    score = next((f for f in fields if f["field"] == field), None)
    if score is None:
        return {"mark": "unknown", "shown": "", "note": ""}
    value = score["score"]
    if value is None:
        mark = "unknown"
    elif value >= _AGREES:
        mark = "agrees"
    else:
        mark = "differs" if value < _CONTRADICTS else "near"
    # The types of a candidate are a list of ids with all classes above them; the mark says enough.
    shown = "" if field == "type" else score["shown"]
    return {"mark": mark, "shown": shown, "note": score["note"]}
