"""API tokens: shown once, kept as a hash, revoked at any moment."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter
from pydantic import Field

from holdfast.api.identity import PartsOf, Someone
from holdfast.api.shapes import Id, Name, Shape
from holdfast.errors import NotThere

router = APIRouter(prefix="/api/tokens", tags=["tokens"])

_DAY_SECONDS = 86_400.0


class TokenShape(Shape):
    id: int
    user_name: str = Field(examples=["ada"])
    name: str = Field(examples=["nightly import"])
    created_at: datetime | None
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None


class TokenList(Shape):
    tokens: list[TokenShape]


class NewToken(Shape):
    name: Name = Field(examples=["nightly import"], description="What it is for.")
    days: int | None = Field(default=None, ge=1, le=3660, description="How long it is good for.")


class MadeToken(Shape):
    id: int
    token: str = Field(examples=["hf_…"], description="Shown this once.")


@router.get("", summary="List the tokens")
async def index(person: Someone, parts: PartsOf) -> TokenList:
    """Yours; for admins, everybody's."""
    found = await parts.console.people.tokens(None if person.is_admin else person.name)
    return TokenList(tokens=[TokenShape.model_validate(token) for token in found])


@router.post("", status_code=201, summary="Make a token for yourself")
async def make(body: NewToken, person: Someone, parts: PartsOf) -> MadeToken:
    """It may do what you may do. Made with a token, it ends with that one at the latest."""
    seconds = None if body.days is None else body.days * _DAY_SECONDS
    made = await parts.accounts.make_token(
        person.name, body.name, seconds, person.name, person.token
    )
    return MadeToken(id=made.id, token=made.value)


@router.delete("/{token_id}", status_code=204, summary="Revoke a token")
async def revoke(token_id: Id, person: Someone, parts: PartsOf) -> None:
    mine = await parts.console.people.tokens(None if person.is_admin else person.name)
    if token_id not in {token.id for token in mine}:
        raise NotThere(f"there is no token {token_id}", "GET /api/tokens lists yours.")
    await parts.console.people.revoke_token(token_id, person.name)
