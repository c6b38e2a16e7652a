"""Coming in with a name and a password, and going out. One-time links are the session's."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from holdfast.api.identity import COOKIE, PartsOf, find_person, ip_of, set_cookie
from holdfast.errors import NotAllowed, Throttled, UserError
from holdfast.web.visit import Posting, fields, site_of

router = APIRouter()


@router.get("/login")
async def show(request: Request) -> Response:
    path = _within(request.query_params.get("next", "/"))
    if await find_person(request) is not None:
        return RedirectResponse(path, 303)
    return _form(request, path)


@router.post("/login")
async def log_in(request: Request, parts: PartsOf) -> Response:
    form = await fields(request)
    path = _within(form.get("next", "/"))
    name = form.get("name", "")[:64].replace("\0", "")
    try:
        session = await parts.accounts.log_in(name, form.get("password", ""), ip_of(request))
    except (NotAllowed, Throttled) as problem:
        status = 429 if isinstance(problem, Throttled) else 401
        return _form(request, path, problem, name, status)
    response = RedirectResponse(path, 303)
    set_cookie(response, request, session)
    return response


@router.post("/logout")
async def log_out(visit: Posting) -> Response:
    if visit.person.session is not None:
        await visit.parts.accounts.log_out(visit.person.session)
    response = visit.go("/login")
    response.delete_cookie(COOKIE)
    return response


def _form(
    request: Request, path: str, problem: UserError | None = None, name: str = "", status: int = 200
) -> Response:
    context = {"next": path, "problem": problem, "name": name}
    return HTMLResponse(site_of(request).render("login.html", context), status)


def _within(path: str) -> str:
    """A path of ours: never another host's, however it is spelled."""
    inside = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if inside else "/"
