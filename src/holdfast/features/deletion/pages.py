"""Deletes on the pages: each deletion asks first, and a large one requires its name to be typed."""

from __future__ import annotations

from fastapi import APIRouter, Response

from holdfast.errors import UserError
from holdfast.features.jobs.pages_job import VisitedJob
from holdfast.server.context import Visitor
from holdfast.server.forms import AdminPost, OperatorPost, UserPost, fields
from holdfast.server.identity import require_session
from holdfast.server.shapes import Id

router = APIRouter()


@router.get("/jobs/{job_id}/delete")
async def job_dialog(visited: VisitedJob) -> Response:
    visited.visit.person.require_change()
    return await visited.dialog("dialogs/delete_job.html")


@router.post("/jobs/{job_id}/delete")
async def delete_job(visited: VisitedJob, visit: OperatorPost) -> Response:
    _require_typed(await fields(visit.request), visited.job.name, "job")
    await visit.parts.deletions.jobs.begin(visited.job.id, visit.person.name)
    return visit.go("/jobs", f"{visited.job.name} is being deleted.")


@router.get("/files/{file_id}/delete")
async def file_dialog(file_id: Id, visit: Visitor) -> Response:
    visit.person.require_change()
    file = await visit.parts.console.files.file(file_id, visit.person.scope)
    return await visit.dialog("dialogs/delete_file.html", here="jobs", file=file)


@router.post("/files/{file_id}/delete")
async def delete_file(file_id: Id, visit: OperatorPost) -> Response:
    await visit.parts.deletions.delete_file(file_id, visit.person.scope, visit.person.name)
    return visit.go("/new", "The file is deleted.")


@router.get("/exports/{export_id}/delete")
async def export_dialog(export_id: Id, visit: Visitor) -> Response:
    export = await visit.parts.console.exports.export(export_id, visit.person.own_scope)
    return await visit.dialog("dialogs/delete_export.html", here="jobs", export=export)


@router.post("/exports/{export_id}/delete")
async def delete_export(export_id: Id, visit: UserPost) -> Response:
    await visit.parts.deletions.delete_export(export_id, visit.person.own_scope, visit.person.name)
    return visit.go("/exports", "The export is deleted.")


@router.get("/settings/users/{name}/delete")
async def user_dialog(name: str, visit: Visitor) -> Response:
    visit.person.require_admin()
    user = await visit.parts.console.people.user(name)
    return await visit.dialog("dialogs/delete_user.html", here="settings", user=user)


@router.post("/settings/users/{name}/delete")
async def delete_user(name: str, visit: AdminPost) -> Response:
    require_session(visit.person, "delete an account")
    _require_typed(await fields(visit.request), name, "account")
    await visit.parts.deletions.begin_other(name, visit.person)
    return visit.go(
        "/settings#people", f"{name} is locked out; everything of theirs is being deleted."
    )


def _require_typed(form: dict[str, str], name: str, what: str) -> None:
    if form.get("name", "").strip() != name.strip():
        raise UserError(f"that is not the name of the {what}", "Type its name to delete it.")
