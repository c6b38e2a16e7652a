"""The visitor's second factor: set up, confirmed with a first code, removed with another one."""

from __future__ import annotations

from fastapi import APIRouter, Response

from holdfast.errors import UserError
from holdfast.server.forms import UserPost, fields
from holdfast.server.identity import ip_of, require_session

router = APIRouter(prefix="/account/second-factor")


@router.post("")
async def set_up(visit: UserPost) -> Response:
    require_session(visit.person, "set up a second factor")
    enrolment = await visit.parts.second_factors.enrol(visit.person.name)
    response = await visit.page("second_factor.html", here="account", enrolment=enrolment)
    response.headers["Cache-Control"] = "no-store"
    return response


@router.post("/confirm")
async def confirm(visit: UserPost) -> Response:
    require_session(visit.person, "set up a second factor")
    code = (await fields(visit.request)).get("code", "")
    if not await visit.parts.second_factors.confirm(visit.person.name, code):
        raise UserError("the code is wrong", "Set it up again and enter the current code.")
    return visit.go("/account", "Second factor is on: logging in now asks for a code.")


@router.post("/remove")
async def remove(visit: UserPost) -> Response:
    require_session(visit.person, "remove a second factor")
    name, code = visit.person.name, (await fields(visit.request)).get("code", "")
    await visit.parts.accounts.require_code(name, ip_of(visit.request), code)
    await visit.parts.second_factors.remove_second_factor(name, name)
    return visit.go("/account", "Second factor removed.")
