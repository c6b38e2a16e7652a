"""Settings: flags, kill switches, people and their tokens."""

from __future__ import annotations

import re

from fastapi import APIRouter, Response

from holdfast.api import flags, kill_switches, users
from holdfast.console.accounts import Role
from holdfast.errors import NotThere, UserError
from holdfast.web.visit import Governing, Visitor, fields

router = APIRouter(prefix="/settings")

_SCOPE = re.compile(r"(all|pipeline:[^\x00/]+|source:[^\x00/]+)\Z")


@router.get("")
async def show(visit: Visitor) -> Response:
    person, parts = visit.person, visit.parts
    people = (await users.index(person, parts)).users if person.is_admin else []
    return await visit.page(
        "settings.html",
        here="settings",
        flags=(await flags.index(person, parts)).flags,
        switches=(await kill_switches.index(person, parts)).kill_switches,
        pipelines=sorted(parts.pipelines),
        people=people,
        roles=Role,
    )


@router.post("/flags/{name}")
async def set_flag(name: str, visit: Governing) -> Response:
    text = (await fields(visit.request)).get("value", "")
    value = flags.flag_named(visit.parts, name).spec.parsed(text)
    await flags.change(name, flags.FlagChange(value=value), visit.person, visit.parts)
    return visit.go("/settings", f"The flag {name} is {text.strip()}.")


@router.post("/switches")
async def set_switch(visit: Governing) -> Response:
    form = await fields(visit.request)
    scope, reason = form.get("scope", ""), form.get("reason", "")[:1000]
    if not _SCOPE.match(scope) or len(scope) > 300:
        raise UserError(f"{scope!r} is no scope", "all, pipeline:NAME or source:NAME.")
    on = form.get("on") == "1"
    await visit.parts.control(visit.person.name).switch(scope, on, reason)
    if on:
        return visit.go("/settings#switches", f"{scope} stops within one slice, on every host.")
    return visit.go("/settings#switches", f"{scope} works again.")


@router.post("/users")
async def add_user(visit: Governing) -> Response:
    """A new account comes in with a one-time link, which is shown this once."""
    form = await fields(visit.request)
    name = form.get("name", "").strip()
    accounts = visit.parts.accounts
    await accounts.add_user(name, form.get("role", ""), None, visit.person.name)
    return await _show_link(visit, name)


@router.post("/users/{name}")
async def change_user(name: str, visit: Governing) -> Response:
    form = await fields(visit.request)
    disabled = {"1": True, "0": False}.get(form.get("disabled", ""))
    role = form.get("role") or None
    await visit.parts.accounts.change_user(name, visit.person.name, role=role, disabled=disabled)
    return visit.go("/settings#people", f"{name} is changed.")


@router.post("/users/{name}/link")
async def make_link(name: str, visit: Governing) -> Response:
    if name not in {user.name for user in await visit.parts.console.people.users()}:
        raise NotThere(f"there is no user {name!r}")
    return await _show_link(visit, name)


async def _show_link(visit: Governing, name: str) -> Response:
    token = await visit.parts.accounts.make_link(name, visit.person.name)
    url = users.link_of(visit.request, token)
    return await visit.page("secret.html", here="settings", name=name, secret=url, kind="link")
