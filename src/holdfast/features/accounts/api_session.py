"""Logs people in and out."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import Field, StringConstraints

from holdfast.features.accounts.accounts import Role
from holdfast.features.accounts.own_account import OwnAccount
from holdfast.features.accounts.person import Person
from holdfast.server.dependencies import Parts
from holdfast.server.identity import (
    COOKIE,
    PartsOf,
    Someone,
    csrf_token,
    ip_of,
    require_session,
    set_cookie,
)
from holdfast.server.shapes import Shape

router = APIRouter(tags=["session"])

Password = Annotated[str, StringConstraints(min_length=1, max_length=1000)]


Code = Annotated[
    str,
    StringConstraints(max_length=100),
    Field(description="Code of your second factor, if you have one, or a recovery code."),
]


class LogIn(Shape):
    name: Annotated[str, StringConstraints(max_length=64, pattern=r"^[^\x00]*$")] = Field(
        examples=["ada"]
    )
    password: Password = Field(examples=["correct horse battery"])
    code: Code = ""


class UseLink(Shape):
    token: Annotated[str, StringConstraints(max_length=200)]
    code: Code = ""


class NewPassword(Shape):
    current: Password | None = Field(default=None, description="Not needed if none is set yet.")
    password: Annotated[str, StringConstraints(min_length=12, max_length=1000)]


class SessionShape(Shape):
    name: str = Field(examples=["ada"])
    role: Role
    csrf_token: str | None = Field(
        default=None,
        description="For the header X-CSRF-Token of changes; null if an API token is used.",
    )


@router.post("/api/session", summary="Log in")
async def log_in(body: LogIn, request: Request, response: Response, parts: PartsOf) -> SessionShape:
    ip = ip_of(request)
    session = await parts.accounts.log_in(body.name, body.password, ip, body.code)
    return await _opened(session, request, response, parts)


@router.post("/api/session/link", summary="Log in with a one-time link")
async def use_link(
    body: UseLink, request: Request, response: Response, parts: PartsOf
) -> SessionShape:
    session = await parts.accounts.use_link(body.token, ip_of(request), body.code)
    return await _opened(session, request, response, parts)


@router.get("/api/session", summary="Show who is logged in")
async def show(person: Someone, parts: PartsOf) -> SessionShape:
    return _shape(person, parts)


@router.delete("/api/session", status_code=204, summary="Log out")
async def log_out(person: Someone, response: Response, parts: PartsOf) -> None:
    if person.session is not None:
        await parts.accounts.log_out(person.session)
        response.delete_cookie(COOKIE)


@router.put("/api/session/password", status_code=204, summary="Set your password")
async def set_password(
    body: NewPassword, person: Someone, request: Request, parts: PartsOf
) -> None:
    """Your other sessions are ended; your tokens and login links become invalid."""
    require_session(person, "set a password")
    account = OwnAccount(parts.console, parts.accounts, person)
    await account.set_password(body.current, body.password, ip_of(request))


async def _opened(session: str, request: Request, response: Response, parts: Parts) -> SessionShape:
    set_cookie(response, request, session)
    user = await parts.accounts.by_session(session)
    assert user is not None
    return _shape(Person(user.name, Role(user.role), session), parts)


def _shape(person: Person, parts: Parts) -> SessionShape:
    csrf = None if person.session is None else csrf_token(parts, person.session)
    return SessionShape(name=person.name, role=person.role, csrf_token=csrf)
