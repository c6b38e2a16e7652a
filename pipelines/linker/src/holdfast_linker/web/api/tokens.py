"""Tokens of the Reconciliation server: each is a URL that anyone who has it can read."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field

from holdfast.server.identity import Operator, PartsOf
from holdfast.server.shapes import Id, Shape
from holdfast_linker.projects import add_token, revoke_token
from holdfast_linker.web.api.shapes import OwnProject

router = APIRouter(prefix="/api/projects/{project_id}/tokens", tags=["linker"])

_DAY_SECONDS = 86_400.0
_PREFIX = "hfr_"
_SHOWN_CHARACTERS = 10


class NewToken(Shape):
    days: Annotated[int, Field(ge=1, le=3650)] | None = Field(
        default=None, description="Days until it expires. Default: never."
    )


class TokenShape(Shape):
    id: int
    shown: str = Field(description="How it begins.", examples=["hfr_8f3k2a"])
    created_by: str
    created_at: datetime | None
    expires_at: datetime | None
    revoked_at: datetime | None


class MadeToken(Shape):
    id: int
    url: str = Field(
        description="The address to add in OpenRefine. It is shown only now.",
        examples=["https://holdfast.example/reconcile/hfr_…"],
    )


class TokenList(Shape):
    tokens: list[TokenShape]


@router.post("", status_code=201, summary="Create an address for OpenRefine")
async def make(
    project: OwnProject, body: NewToken, request: Request, person: Operator, parts: PartsOf
) -> MadeToken:
    """It lets anyone who has it read what the project accepted and looked up, and nothing else."""
    token = _PREFIX + secrets.token_urlsafe(24)
    seconds = None if body.days is None else body.days * _DAY_SECONDS
    change = add_token(project, hash_of(token), token[:_SHOWN_CHARACTERS], person.name, seconds)
    token_id = await parts.control(person.name).change(change)
    return MadeToken(id=token_id, url=f"{str(request.base_url).rstrip('/')}/reconcile/{token}")


@router.get("", summary="List the addresses for OpenRefine")
async def index(project: OwnProject, parts: PartsOf) -> TokenList:
    rows = await parts.fetch("linker_tokens_of", {"project_id": project.id})
    names = tuple(TokenShape.model_fields)
    return TokenList(tokens=[TokenShape(**{name: row[name] for name in names}) for row in rows])


@router.delete("/{token_id}", status_code=204, summary="Revoke an address for OpenRefine")
async def revoke(project: OwnProject, token_id: Id, person: Operator, parts: PartsOf) -> Response:
    await parts.control(person.name).change(revoke_token(project, token_id))
    return Response(status_code=204)


def hash_of(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
