"""The visitor's own account: password and tokens."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter, Response

from holdfast.features.accounts.own_account import MOST_DAYS, OwnAccount
from holdfast.server.context import Visit, Visitor
from holdfast.server.formatting import size
from holdfast.server.forms import UserPost, fields, whole_number
from holdfast.server.identity import ip_of, require_session
from holdfast.server.shapes import Id

router = APIRouter(prefix="/account")


@router.get("")
async def show(visit: Visitor) -> Response:
    user = await visit.parts.console.people.user(visit.person.name)
    tokens = await visit.parts.console.people.tokens(visit.person.own_scope)
    quotas = visit.parts.console.quotas
    used, limits = asdict(await quotas.used(user.name)), asdict(quotas.limits)
    return await visit.page(
        "account.html",
        here="account",
        user=user,
        tokens=tokens,
        usage=[(name, _amount(name, used[name]), _amount(name, limits[name])) for name in used],
        second_factor=await visit.parts.second_factors.is_needed(user.name),
    )


def _amount(name: str, count: int) -> str:
    return size(count) if name == "bytes" else f"{count:,}"


@router.post("/password")
async def set_password(visit: UserPost) -> Response:
    form = await fields(visit.request)
    require_session(visit.person, "set a password")
    await _account(visit).set_password(
        form.get("current"), form.get("password", ""), ip_of(visit.request)
    )
    return visit.go("/account", "Password changed. Your other sessions were logged out.")


@router.post("/tokens")
async def make_token(visit: UserPost) -> Response:
    form = await fields(visit.request)
    name = form.get("name", "")
    token = await _account(visit).make_token(name, whole_number(form.get("days"), MOST_DAYS))
    return await visit.page(
        "secret.html", here="account", name=name, secret=token.value, kind="token"
    )


@router.post("/tokens/{token_id}/revoke")
async def revoke(token_id: Id, visit: UserPost) -> Response:
    await _account(visit).revoke_token(token_id)
    return visit.go("/account", "Token revoked.")


def _account(visit: Visit) -> OwnAccount:
    return OwnAccount(visit.parts.console, visit.parts.accounts, visit.person)
