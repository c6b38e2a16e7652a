"""Posted forms: who may post them, their fields, and values out of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import orjson
from fastapi import Depends, Request
from pydantic import ValidationError
from starlette.datastructures import FormData

from holdfast.errors import UserError
from holdfast.model import Json
from holdfast.server.context import Visit, Visitor
from holdfast.server.identity import CSRF_HEADER, check_csrf
from holdfast.server.problems import Malformed
from holdfast.server.shapes import Shape

S = TypeVar("S", bound=Shape)

LONGEST_REASON = 1000
_LARGEST = 10**12


async def user_post(visit: Visitor) -> Visit:
    """Accepts a form that every user may post, to change their own things."""
    form_token = (await fields(visit.request)).get("csrf", "")
    check_csrf(visit.parts, visit.person, visit.request.headers.get(CSRF_HEADER) or form_token)
    return visit


UserPost = Annotated[Visit, Depends(user_post)]


async def operator_post(visit: UserPost) -> Visit:
    """Accepts a form from people who may change jobs."""
    visit.person.require_change()
    return visit


async def admin_post(visit: UserPost) -> Visit:
    visit.person.require_admin()
    return visit


OperatorPost = Annotated[Visit, Depends(operator_post)]
AdminPost = Annotated[Visit, Depends(admin_post)]


async def fields(request: Request) -> dict[str, str]:
    """Returns the fields of the posted form."""
    form = await _form(request)
    return {name: value for name, value in form.items() if isinstance(value, str)}


def shaped(shape: type[S], values: Mapping[str, Any]) -> S:
    """Makes a shape of what a form says; what the API would refuse is an error of the form."""
    try:
        return shape.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])).replace("_", " ")
        name = "".join(f" {each.lower()}" if each.isupper() else each for each in place)
        raise UserError(f"{name}: {first['msg']}", "Correct it, and send the form again.") from None


async def values_of(request: Request, name: str) -> list[str]:
    """Returns all values of one field of the posted form."""
    return [value for value in (await _form(request)).getlist(name) if isinstance(value, str)]


async def _form(request: Request) -> FormData:
    """Reads the form; as in a URL, a NUL is refused: no database can store it."""
    form = await request.form()
    await form.close()  # no form of ours has files
    if any("\0" in text for pair in form.multi_items() for text in pair if isinstance(text, str)):
        raise Malformed("the form contains a NUL character")
    return form


def reason_in(form: dict[str, str]) -> str:
    return form.get("reason", "")[:LONGEST_REASON]


def whole_number(text: str | None, largest: int = _LARGEST) -> int | None:
    """Parses a number; returns None if the field is empty.

    Long texts are refused before Python would parse them."""
    if not text:
        return None
    plain = text.isascii() and text.isdecimal() and len(text) < 16
    if not plain or not 0 < int(text) <= largest:
        raise UserError(f"{text[:50]!r} is not a valid number", f"Enter 1 to {largest:,}.")
    return int(text)


def parse_options(text: str) -> Json:
    """Parses one NAME=VALUE per line; a value that is JSON is parsed."""
    options: Json = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, equals, value = line.partition("=")
        if not equals or not name.strip() or name.strip().startswith("_"):
            raise UserError(f"the option {line!r} is not valid", "Write one NAME=VALUE per line.")
        try:
            options[name.strip()] = orjson.loads(value)
        except orjson.JSONDecodeError:
            options[name.strip()] = value.strip()
    return options
