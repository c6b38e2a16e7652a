"""Adds the pages to the API's application: routes, static files, and errors as pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from holdfast.api.identity import find_person, parts_of
from holdfast.api.problems import status_of
from holdfast.errors import DatabaseGone, NotAllowed, UserError
from holdfast.web import (
    account,
    audit,
    dead_letters,
    exports,
    gates,
    item,
    job,
    job_actions,
    jobs,
    login,
    new_job,
    operations,
    overview,
    pending,
    schedules,
    second_factor,
    settings_page,
    streams,
)
from holdfast.web.navigation import Entry, PagePack
from holdfast.web.visit import Site, Visit, login_path, site_of

VIEWS = (
    login, overview, jobs, job, job_actions, exports, operations, item, new_job, pending, streams,
    gates, dead_letters, schedules, audit, settings_page, account,
    second_factor,
)  # fmt: skip
#: Paths that answer as the API does, to people too; packs add theirs.
_MACHINES = ("/api/", "/healthz", "/readyz", "/metrics")

_Handler = Callable[[Request, Any], Awaitable[Response]]


class _FreshFiles(StaticFiles):
    """Browsers ask whether a file changed before they use what they kept."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "no-cache"
        return response


def add_pages(app: FastAPI, packs: Sequence[PagePack] = ()) -> None:
    app.state.site = Site(packs)
    for pack in packs:
        if pack.static is not None:
            name = f"static {pack.name}"
            app.mount(f"/static/{pack.name}", _FreshFiles(directory=pack.static), name)
    app.mount("/static", _FreshFiles(directory=Path(__file__).parent / "static"), "static")
    for view in VIEWS:
        app.include_router(view.router, include_in_schema=False)
    for pack in packs:
        app.include_router(pack.router, include_in_schema=False)
        if pack.api is not None:
            app.include_router(pack.api)
    machines = (*_MACHINES, *(prefix for pack in packs for prefix in pack.machines))
    kinds = (UserError, RequestValidationError, HTTPException, DatabaseGone, Exception)
    for kind in kinds:
        app.add_exception_handler(kind, _shown_to_people(app.exception_handlers[kind], machines))


def _shown_to_people(for_machines: Any, machines: tuple[str, ...]) -> _Handler:
    """As a page where a person sees it, else as before."""

    async def handle(request: Request, error: Exception) -> Response:
        response: Response = await for_machines(request, error)
        if request.url.path.startswith(machines):
            return response
        if isinstance(error, NotAllowed) and error.log_in:
            return _to_login(request, error)
        return await _problem(request, response.status_code, error)

    return handle


def _to_login(request: Request, error: NotAllowed) -> Response:
    if request.headers.get("HX-Request") == "true":
        return Response(status_code=204, headers={"HX-Redirect": login_path(request)})
    if request.url.path.startswith("/login"):
        context = {"problem": error, "next": "/", "name": ""}
        return HTMLResponse(site_of(request).render("login.html", context), 401)
    return RedirectResponse(login_path(request), 303)


async def _problem(request: Request, status: int, error: Exception) -> Response:
    if isinstance(error, UserError):
        text, hint = error.message, error.hint
        status = status_of(error)
    elif status in (404, 405, 422):
        status, text, hint = 404, "there is no such page", "The address may be mistyped."
    elif isinstance(error, DatabaseGone):
        text, hint = "the database cannot be reached now", "Try again soon."
    else:
        text, hint = "something unexpected happened", "The server's log says what."
    told: dict[str, Any] = {
        "status": status,
        "title": HTTPStatus(status).phrase,
        "text": text,
        "hint": hint,
    }
    if request.headers.get("HX-Request") == "true":
        headers = {"HX-Retarget": "#notes", "HX-Reswap": "innerHTML"}
        return HTMLResponse(site_of(request).render("parts/problem.html", told), status, headers)
    person = None if isinstance(error, DatabaseGone) else await find_person(request)
    if person is None:
        return HTMLResponse(site_of(request).render("problem_alone.html", told), status)
    told["back"] = _section(request)
    response = await Visit(request, person, parts_of(request)).page("problem.html", told=told)
    response.status_code = status
    return response


def _section(request: Request) -> Entry:
    """The line of the rail under which the address stands, else the jobs."""
    entries = site_of(request).entries
    path = f"{request.url.path}/"
    within = [one for one in entries if one.path != "/" and path.startswith(f"{one.path}/")]
    return within[0] if within else next(one for one in entries if one.name == "jobs")
