"""Logs people in with a name and a password or with a one-time link, and out.

Opening a link only shows a button: mail scanners and chat previews open links too, and would use it
up.
"""

from __future__ import annotations

import secrets

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from holdfast.errors import NotAllowed, Throttled, UserError
from holdfast.server.context import site_of
from holdfast.server.dependencies import Parts
from holdfast.server.forms import UserPost, fields
from holdfast.server.identity import (
    COOKIE,
    PartsOf,
    csrf_matches,
    csrf_token,
    find_person,
    ip_of,
    set_cookie,
)

router = APIRouter()

#: Identifies the browser to the form of a link, before there is a session.
_VISIT_COOKIE = "holdfast_visit"
_VISIT_SECONDS = 3600
#: Values of Sec-Fetch-Site; a form on another site could log people in as another user.
_OWN_SITE = ("same-origin", "none")


@router.get("/login")
async def show(request: Request) -> Response:
    path = _within(request.query_params.get("next", "/"))
    if await find_person(request) is not None:
        return RedirectResponse(path, 303)
    return _form(request, path)


@router.post("/login")
async def log_in(request: Request, parts: PartsOf) -> Response:
    if request.headers.get("Sec-Fetch-Site", _OWN_SITE[0]) not in _OWN_SITE:
        problem = NotAllowed("this form was sent from another site", "Log in here.")
        return _form(request, "/", problem, status=403)
    form = await fields(request)
    path = _within(form.get("next", "/"))
    name = form.get("name", "")[:64].replace("\0", "")
    try:
        session = await parts.accounts.log_in(
            name, form.get("password", ""), ip_of(request), form.get("code", "")
        )
    except (NotAllowed, Throttled) as problem:
        status = 429 if isinstance(problem, Throttled) else 401
        return _form(request, path, problem, name, status)
    response = RedirectResponse(path, 303)
    set_cookie(response, request, session)
    return response


@router.get("/login/{token}")
async def open_link(token: str, request: Request, parts: PartsOf) -> Response:
    return _link_form(token, request, parts)


@router.post("/login/{token}")
async def use_link(token: str, request: Request, parts: PartsOf) -> Response:
    csrf = (await fields(request)).get("csrf", "")
    visit = request.cookies.get(_VISIT_COOKIE, "")
    if not visit or not csrf_matches(parts, visit, csrf):
        return _link_form(token, request, parts, expired=True)
    code = (await fields(request)).get("code", "")
    session = await parts.accounts.use_link(token, ip_of(request), code)
    response = RedirectResponse("/", 303)
    set_cookie(response, request, session)
    response.delete_cookie(_VISIT_COOKIE)
    return response


@router.post("/logout")
async def log_out(visit: UserPost) -> Response:
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


def _link_form(token: str, request: Request, parts: Parts, expired: bool = False) -> Response:
    visit = secrets.token_urlsafe(16)
    context = {"token": token, "csrf": csrf_token(parts, visit), "expired": expired}
    response = HTMLResponse(
        site_of(request).render("login_link.html", context), 403 if expired else 200
    )
    response.headers["Cache-Control"] = "no-store"
    # Strict: a form on another site, which could log people in as another user, lacks it.
    response.set_cookie(
        _VISIT_COOKIE,
        visit,
        max_age=_VISIT_SECONDS,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response


def _within(path: str) -> str:
    """Returns a path on this site; never another host, however it is spelled."""
    inside = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if inside else "/"
