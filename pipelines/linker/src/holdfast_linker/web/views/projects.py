"""Projects: the list, and one with its datasets and figures."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import ValidationError

from holdfast.errors import UserError
from holdfast.features.exports.shapes import Format
from holdfast.model import Json
from holdfast.server.context import Visit, Visitor
from holdfast.server.forms import OperatorPost, fields, shaped, whole_number
from holdfast.server.identity import ip_of
from holdfast.server.shapes import Id
from holdfast_linker.entries import parse_mapping
from holdfast_linker.guessing import mapping_sentences
from holdfast_linker.options import WIKIDATA
from holdfast_linker.projects import Project
from holdfast_linker.tasks import TaskState
from holdfast_linker.web.api import projects as api
from holdfast_linker.web.api import tasks as tasks_api
from holdfast_linker.web.api import tokens as tokens_api
from holdfast_linker.web.api.figures import LIVE, describe_project
from holdfast_linker.web.api.shapes import (
    NewProject,
    ProjectChange,
    may_change,
    own_project,
    reads_of,
    visible_project,
)

router = APIRouter(prefix="/linker")

_PAGE_SIZE = 100
_MOST_DAYS = 3650
_HIGHEST_SCORE = 100
_FORMATS: dict[Format, str] = {
    "xlsx": "Excel (XLSX)",
    "csv": "CSV",
    "json": "JSON",
    "jsonl": "JSON Lines",
}


@router.get("")
async def index(visit: Visitor, after: Annotated[str | None, Query()] = None) -> Response:
    page = await api.index(visit.person, visit.parts, _PAGE_SIZE, after)
    return await visit.page(
        "linker/projects.html", here="linker", projects=page.projects, next=page.next
    )


@router.post("")
async def make(visit: OperatorPost) -> Response:
    form = await fields(visit.request)
    name, provider = form.get("name", "").strip(), form.get("provider", "").strip()
    if not name:
        raise UserError("the project has no name", "Give it one.")
    body = shaped(NewProject, {"name": name, "provider": provider or WIKIDATA})
    project = await api.make(body, visit.person, visit.parts)
    return visit.go(path_of(project.id), f"{project.name} is ready for datasets.")


@router.get("/projects/{project_id}")
async def show(project_id: Id, visit: Visitor) -> Response:
    project = await visible_project(project_id, visit.person, visit.parts)
    context = await _context(project, visit)
    return await visit.page("linker/project.html", here="linker", **context)


async def _context(project: Project, visit: Visit) -> dict[str, Any]:
    shape = await describe_project(project, visit.parts)
    live = any(dataset.job_state in {str(state) for state in LIVE} for dataset in shape.datasets)
    return {
        "project": shape,
        "at": path_of(project.id),
        "live": live,
        "states": [str(state) for state in TaskState],
        "waiting": any(dataset.job_id is None and dataset.file_id for dataset in shape.datasets),
        "may_change": may_change(project, visit.person),
        "said": _said,
        "tokens": await _tokens(project, visit) if may_change(project, visit.person) else [],
        "formats": _FORMATS,
        "repeated": await reads_of(visit.parts).repeated_ids(project.id),
    }


def _said(mapping: Json) -> list[str]:
    return mapping_sentences(parse_mapping(mapping))


async def _tokens(project: Project, visit: Visit) -> list[tokens_api.TokenShape]:
    listed = (await tokens_api.index(project, visit.parts)).tokens
    now = visit.parts.clock.now()
    return [t for t in listed if t.revoked_at is None and (t.expires_at or now) >= now]


@router.post("/projects/{project_id}/match")
async def match(project_id: Id, visit: OperatorPost) -> Response:
    project = await own_project(project_id, visit.person, visit.parts)
    started = await api.match_project(project, ip_of(visit.request), visit.person, visit.parts)
    jobs = "1 job was" if len(started.jobs) == 1 else f"{len(started.jobs)} jobs were"
    again = f" {started.matched_again:,} failed entries are tried again."
    return visit.go(path_of(project_id), f"{jobs} started.{again if started.matched_again else ''}")


@router.post("/projects/{project_id}/cancel")
async def cancel(project_id: Id, visit: OperatorPost) -> Response:
    project = await own_project(project_id, visit.person, visit.parts)
    await api.cancel(project, visit.person, visit.parts)
    return visit.go(path_of(project_id), "Cancelled. Entries that were matched keep their results.")


@router.post("/projects/{project_id}/rules")
async def change(project_id: Id, visit: OperatorPost) -> Response:
    project = await own_project(project_id, visit.person, visit.parts)
    form = await fields(visit.request)
    try:
        body = ProjectChange(
            auto_accept=float(form.get("auto_accept") or project.rules.auto_accept),
            lead=float(form.get("lead") or project.rules.lead),
        )
    except ValueError:
        raise UserError("the thresholds are out of bounds", "50 to 101, and 0 to 100.") from None
    await api.change(project, body, visit.person, visit.parts)
    return visit.go(path_of(project_id), "Changed, for entries that are matched from now on.")


@router.post("/projects/{project_id}/tokens")
async def make_address(project_id: Id, visit: OperatorPost) -> Response:
    project = await own_project(project_id, visit.person, visit.parts)
    days = whole_number((await fields(visit.request)).get("days"), _MOST_DAYS)
    body = tokens_api.NewToken(days=days)
    made = await tokens_api.make(project, body, visit.request, visit.person, visit.parts)
    context = {"project": project, "at": path_of(project_id), "url": made.url}
    return await visit.page("linker/address.html", here="linker", **context)


@router.post("/projects/{project_id}/tokens/{token_id}/revoke")
async def revoke_address(project_id: Id, token_id: Id, visit: OperatorPost) -> Response:
    project = await own_project(project_id, visit.person, visit.parts)
    await tokens_api.revoke(project, token_id, visit.person, visit.parts)
    return visit.go(path_of(project_id), "The address is revoked.")


@router.post("/projects/{project_id}/export")
async def export(project_id: Id, visit: OperatorPost) -> Response:
    project = await own_project(project_id, visit.person, visit.parts)
    wanted = (await fields(visit.request)).get("format", "")
    format = next((each for each in _FORMATS if each == wanted), None)
    if format is None:
        raise UserError(f"there is no format {wanted[:50]!r}", f"Formats: {', '.join(_FORMATS)}.")
    operation = await api.export(project, visit.person, visit.parts, format)
    return visit.go(f"/operations/{operation.id}", "The exports are being written.")


@router.post("/projects/{project_id}/readers")
async def invite(project_id: Id, visit: OperatorPost) -> Response:
    project = await own_project(project_id, visit.person, visit.parts)
    name = (await fields(visit.request)).get("name", "").strip()
    if not name:
        raise UserError("no user name was given", "Enter the name of an account.")
    await api.invite(project, name, visit.person, visit.parts)
    return visit.go(path_of(project_id), f"{name} can read this project.")


@router.post("/projects/{project_id}/readers/remove")
async def withdraw(project_id: Id, visit: OperatorPost) -> Response:
    project = await own_project(project_id, visit.person, visit.parts)
    name = (await fields(visit.request)).get("name", "")
    await api.withdraw(project, name, visit.person, visit.parts)
    return visit.go(path_of(project_id), f"{name} can no longer read this project.")


@router.post("/projects/{project_id}/bulk")
async def decide_in_bulk(project_id: Id, visit: OperatorPost) -> Response:
    project = await own_project(project_id, visit.person, visit.parts)
    form = await fields(visit.request)
    try:
        body = tasks_api.BulkReview.model_validate(
            {
                "action": form.get("action"),
                "low": form.get("low") or 0,
                "high": form.get("high") or _HIGHEST_SCORE,
                "dry_run": bool(form.get("dry_run")),
            }
        )
    except ValidationError:
        raise UserError("the scores are not numbers from 0 to 100") from None
    started = await tasks_api.review(project, body, visit.person, visit.parts)
    if started.operation is not None:
        return visit.go(f"/operations/{started.operation.id}", "The decisions are being written.")
    entries = "1 entry matches" if started.count == 1 else f"{started.count:,} entries match"
    return visit.go(path_of(project_id), f"{entries}.")


@router.get("/projects/{project_id}/delete")
async def ask_delete(project_id: Id, visit: Visitor) -> Response:
    project = await own_project(project_id, visit.person, visit.parts)
    return await visit.dialog(
        "linker/ask_delete.html", here="linker", **await _context(project, visit)
    )


@router.post("/projects/{project_id}/delete")
async def delete(project_id: Id, visit: OperatorPost) -> Response:
    project = await own_project(project_id, visit.person, visit.parts)
    await api.delete(project, visit.person, visit.parts)
    return visit.go("/linker", f"{project.name} is deleted.")


def path_of(project_id: int) -> str:
    return f"/linker/projects/{project_id}"
