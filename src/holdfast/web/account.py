"""One's own account: password and tokens."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter, Response

from holdfast.api import session, tokens
from holdfast.api.shapes import Id
from holdfast.console.passwords import check_password
from holdfast.errors import UserError
from holdfast.web.forms import whole_number
from holdfast.web.visit import Posting, Visitor, fields

router = APIRouter(prefix="/account")

_MOST_DAYS = 3660


@router.get("")
async def show(visit: Visitor) -> Response:
    user = await visit.parts.console.people.user(visit.person.name)
    found = await tokens.index(visit.person, visit.parts)
    quotas = visit.parts.console.quotas
    used, limits = asdict(await quotas.used(user.name)), asdict(quotas.limits)
    told = {
        "user": user,
        "tokens": found.tokens,
        "usage": [(name, f"{used[name]:,}", f"{limits[name]:,}") for name in used],
        "second_factor": await visit.parts.second_factors.is_needed(user.name),
    }
    return await visit.page("account.html", here="account", **told)


@router.post("/password")
async def set_password(visit: Posting) -> Response:
    form = await fields(visit.request)
    password = form.get("password", "")
    check_password(password, visit.person.name)
    body = session.NewPassword(current=form.get("current") or None, password=password)
    await session.set_password(body, visit.person, visit.request, visit.parts)
    return visit.go("/account", "The password is set; your other sessions have ended.")


@router.post("/tokens")
async def make_token(visit: Posting) -> Response:
    form = await fields(visit.request)
    name, days = form.get("name", "").strip(), form.get("days", "")
    if not name or len(name) > 200 or not name.isprintable():
        raise UserError("the token needs a name", "Say what it is for.")
    body = tokens.NewToken(name=name, days=whole_number(days, _MOST_DAYS))
    made = await tokens.make(body, visit.person, visit.parts)
    return await visit.page(
        "secret.html", here="account", name=name, secret=made.token, kind="token"
    )


@router.post("/tokens/{token_id}/revoke")
async def revoke(token_id: Id, visit: Posting) -> Response:
    await tokens.revoke(token_id, visit.person, visit.parts)
    return visit.go("/account", "Revoked: it opens nothing any more.")
