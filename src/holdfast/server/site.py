"""Adds the pages to the API's application: routes, static files, and errors as pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from holdfast.errors import DatabaseGone, NotAllowed, NotThere, UserError
from holdfast.features.manifest import routers_of
from holdfast.server import settings_page
from holdfast.server.context import Site, Visit, is_partial, login_path, site_of
from holdfast.server.identity import find_person, parts_of
from holdfast.server.navigation import Entry, PagePack
from holdfast.server.problems import status_of

#: Paths that respond as an API, to people too; extensions add their own.
_API_PREFIXES = ("/api/", "/healthz", "/readyz", "/metrics")

_Handler = Callable[[Request, Any], Awaitable[Response]]


class _RevalidatedFiles(StaticFiles):
    """Static files for which browsers check whether they changed before they use their copy."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "no-cache"
        return response


def page_routers() -> list[APIRouter]:
    return [*routers_of("pages"), settings_page.router]


def add_pages(app: FastAPI, packs: Sequence[PagePack] = ()) -> None:
    app.state.site = Site(packs)
    app.state.uploads = tuple(path for pack in packs for path in pack.uploads)
    app.state.looks = [(pack.name, pack.look) for pack in packs if pack.look is not None]
    for pack in packs:
        if pack.static is not None:
            name = f"static {pack.name}"
            app.mount(f"/static/{pack.name}", _RevalidatedFiles(directory=pack.static), name)
    app.mount("/static", _RevalidatedFiles(directory=Path(__file__).parent / "static"), "static")
    for router in page_routers():
        app.include_router(router, include_in_schema=False)
    for pack in packs:
        app.include_router(pack.router, include_in_schema=False)
        if pack.api is not None:
            app.include_router(pack.api)
    prefixes = (*_API_PREFIXES, *(prefix for pack in packs for prefix in pack.machines))
    kinds = (UserError, RequestValidationError, HTTPException, DatabaseGone, Exception)
    for kind in kinds:
        app.add_exception_handler(kind, _as_page(app.exception_handlers[kind], prefixes))


def _as_page(api_handler: Any, api_prefixes: tuple[str, ...]) -> _Handler:
    """Shows an error as a page if a person sees it, otherwise as the API does."""

    async def handle(request: Request, error: Exception) -> Response:
        response: Response = await api_handler(request, error)
        if request.url.path.startswith(api_prefixes):
            return response
        if isinstance(error, NotAllowed) and error.log_in:
            return _to_login(request, error)
        return await _problem(request, response.status_code, error)

    return handle


def _to_login(request: Request, error: NotAllowed) -> Response:
    if is_partial(request):
        return Response(status_code=204, headers={"HX-Redirect": login_path(request)})
    if request.url.path.startswith("/login"):
        context = {"problem": error, "next": "/", "name": ""}
        return HTMLResponse(site_of(request).render("login.html", context), 401)
    return RedirectResponse(login_path(request), 303)


async def _problem(request: Request, status: int, error: Exception) -> Response:
    status, text, hint = _message(status, error)
    problem = {"status": status, "title": HTTPStatus(status).phrase, "text": text, "hint": hint}
    site = site_of(request)
    if is_partial(request):
        headers = {"HX-Retarget": "#notes", "HX-Reswap": "innerHTML"}
        context = {"problem": problem}
        return HTMLResponse(site.render("parts/problem.html", context), status, headers)
    person = None if isinstance(error, DatabaseGone) else await find_person(request)
    if person is None:
        return HTMLResponse(site.render("problem_alone.html", {"problem": problem}), status)
    visit = Visit(request, person, parts_of(request))
    response = await visit.page("problem.html", problem=problem, section=_section(request))
    response.status_code = status
    return response


def _message(status: int, error: Exception) -> tuple[int, str, str | None]:
    """Returns the status, what is wrong, and what to do about it."""
    if isinstance(error, NotThere):  # its hint names an API route; the page links to the list
        return status_of(error), error.message, None
    if isinstance(error, UserError):
        return status_of(error), error.message, error.hint
    if status in (404, 405, 422):
        return 404, "page not found", "Check the address for typing errors."
    if isinstance(error, DatabaseGone):
        return status, "the database cannot be reached", "Try again in a moment."
    return status, "something went wrong", "The server log has the details."


def _section(request: Request) -> Entry:
    """Returns the navigation entry that the address belongs to, otherwise Jobs."""
    entries = site_of(request).entries
    path = f"{request.url.path}/"
    within = [entry for entry in entries if entry.path != "/" and path.startswith(f"{entry.path}/")]
    return within[0] if within else next(entry for entry in entries if entry.name == "jobs")
