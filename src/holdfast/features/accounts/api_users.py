"""User accounts, for admins."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import Field, StringConstraints

from holdfast.features.accounts.accounts import Role
from holdfast.features.accounts.shapes import NameInPath, UserName, UserShape, link_of, user_shape
from holdfast.server.identity import Admin, PartsOf, require_session
from holdfast.server.shapes import Shape

router = APIRouter(prefix="/api/users", tags=["users"])

NewPassword = Annotated[str, StringConstraints(min_length=12, max_length=1000)]


class UserList(Shape):
    users: list[UserShape]


class NewUser(Shape):
    name: UserName = Field(examples=["ada"])
    role: Role = Role.OPERATOR
    password: NewPassword | None = Field(
        default=None, description="Without one, they log in with a one-time link."
    )


class UserChange(Shape):
    role: Role | None = None
    disabled: bool | None = None
    password: NewPassword | None = None


class LinkShape(Shape):
    url: str = Field(examples=["http://127.0.0.1:8000/login/4f…"])


@router.get("", summary="List the accounts")
async def index(person: Admin, parts: PartsOf) -> UserList:
    return UserList(users=[user_shape(user) for user in await parts.console.people.users()])


@router.post("", status_code=201, summary="Add an account")
async def add(body: NewUser, person: Admin, parts: PartsOf) -> UserShape:
    """Needs a session: an account would outlive the token that made it."""
    require_session(person, "add an account")
    await parts.accounts.add_user(body.name, body.role, body.password, person.name)
    return user_shape(await parts.console.people.user(body.name))


@router.patch("/{name}", summary="Change an account")
async def change(name: NameInPath, body: UserChange, person: Admin, parts: PartsOf) -> UserShape:
    """An account that is disabled loses its sessions at once, and its tokens are suspended; a new
    password revokes them. Needs a session: what a token changed would outlive it."""
    require_session(person, "change an account")
    await parts.accounts.change_user(
        name, person.name, role=body.role, disabled=body.disabled, password=body.password
    )
    return user_shape(await parts.console.people.user(name))


@router.post("/{name}/link", status_code=201, summary="Create a one-time login link")
async def make_link(name: NameInPath, request: Request, person: Admin, parts: PartsOf) -> LinkShape:
    require_session(person, "create a login link")
    token = await parts.accounts.make_link(name, person.name)
    return LinkShape(url=link_of(request, token))
