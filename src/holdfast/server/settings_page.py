"""Settings: flags, kill switches, and user accounts."""

from __future__ import annotations

from fastapi import APIRouter, Response

from holdfast.features.accounts.accounts import Role
from holdfast.features.accounts.shapes import link_of
from holdfast.features.switches.kill_switches import switch
from holdfast.server.context import Visit, Visitor
from holdfast.server.forms import AdminPost, fields, reason_in
from holdfast.server.identity import require_session

router = APIRouter(prefix="/settings")


@router.get("")
async def show(visit: Visitor) -> Response:
    person, parts = visit.person, visit.parts
    people = await parts.console.people.users() if person.is_admin else []
    return await visit.page(
        "settings.html",
        here="settings",
        flags=await parts.flags.all(),
        switches=await parts.store.reads.kill_switches(),
        pipelines=sorted(parts.pipelines),
        people=people,
        roles=Role,
    )


@router.post("/flags/{name}")
async def set_flag(name: str, visit: AdminPost) -> Response:
    text = (await fields(visit.request)).get("value", "")
    await visit.parts.flags.change_to(name, text, visit.person.name)
    return visit.go("/settings", f"The flag {name} is {text.strip()}.")


@router.post("/switches")
async def set_switch(visit: AdminPost) -> Response:
    form = await fields(visit.request)
    scope, on = form.get("scope", ""), form.get("on") == "1"
    changed = await switch(visit.parts.control(visit.person.name), scope, on, reason_in(form))
    if not changed:
        state = "on" if on else "off"
        return visit.go("/settings#switches", f"Kill switch {scope} was already {state}.")
    if on:
        note = f"Kill switch {scope} is on: work stops within two seconds, on every host."
        return visit.go("/settings#switches", note)
    return visit.go("/settings#switches", f"Kill switch {scope} is off: work continues.")


@router.post("/users")
async def add_user(visit: AdminPost) -> Response:
    """Adds a user, who logs in with a one-time link, which is only shown once."""
    require_session(visit.person, "create a login link")
    form = await fields(visit.request)
    name = form.get("name", "").strip()
    await visit.parts.accounts.add_user(name, form.get("role", ""), None, visit.person.name)
    return await _show_link(visit, name)


@router.post("/users/{name}")
async def change_user(name: str, visit: AdminPost) -> Response:
    require_session(visit.person, "change an account")
    form = await fields(visit.request)
    disabled = {"1": True, "0": False}.get(form.get("disabled", ""))
    role = form.get("role") or None
    await visit.parts.accounts.change_user(name, visit.person.name, role=role, disabled=disabled)
    return visit.go("/settings#people", f"The account {name} was changed.")


@router.post("/users/{name}/link")
async def make_link(name: str, visit: AdminPost) -> Response:
    return await _show_link(visit, name)


async def _show_link(visit: Visit, name: str) -> Response:
    require_session(visit.person, "create a login link")
    token = await visit.parts.accounts.make_link(name, visit.person.name)
    url = link_of(visit.request, token)
    return await visit.page("secret.html", here="settings", name=name, secret=url, kind="link")
