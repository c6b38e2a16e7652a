"""API tokens: shown once, stored as a hash, revocable at any time."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter
from pydantic import Field

from holdfast.features.accounts.own_account import MOST_DAYS, OwnAccount
from holdfast.server.identity import PartsOf, Someone
from holdfast.server.shapes import Id, Name, Shape

router = APIRouter(prefix="/api/tokens", tags=["tokens"])


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
    days: int | None = Field(default=None, ge=1, le=MOST_DAYS, description="How long it is valid.")


class MadeToken(Shape):
    id: int
    token: str = Field(examples=["hf_…"], description="Only shown this once.")


@router.get("", summary="List the tokens")
async def index(person: Someone, parts: PartsOf) -> TokenList:
    """You see your own tokens; admins see all."""
    tokens = await parts.console.people.tokens(person.own_scope)
    return TokenList(tokens=[TokenShape.model_validate(token) for token in tokens])


@router.post("", status_code=201, summary="Create a token for yourself")
async def make(body: NewToken, person: Someone, parts: PartsOf) -> MadeToken:
    """It has your permissions. Created with a token, it expires with that one at the latest."""
    account = OwnAccount(parts.console, parts.accounts, person)
    token = await account.make_token(body.name, body.days)
    return MadeToken(id=token.id, token=token.value)


@router.delete("/{token_id}", status_code=204, summary="Revoke a token")
async def revoke(token_id: Id, person: Someone, parts: PartsOf) -> None:
    await OwnAccount(parts.console, parts.accounts, person).revoke_token(token_id)
