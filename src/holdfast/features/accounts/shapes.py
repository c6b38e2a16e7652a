"""Accounts as programs and people see them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import Path, Request
from pydantic import Field, StringConstraints

from holdfast.features.accounts.accounts import Role
from holdfast.server.shapes import Shape

UserName = Annotated[str, StringConstraints(max_length=64, pattern=r"^[a-z0-9][a-z0-9._@-]{0,63}$")]
NameInPath = Annotated[UserName, Path(alias="name", examples=["ada"])]


class UserShape(Shape):
    name: str = Field(examples=["ada"])
    role: Role
    has_password: bool
    disabled: bool
    created_at: datetime | None
    updated_at: datetime | None


def user_shape(user: object) -> UserShape:
    return UserShape.model_validate(user)


def link_of(request: Request, token: str) -> str:
    """Returns the page that accepts a one-time link."""
    return f"{request.base_url}login/{token}"
