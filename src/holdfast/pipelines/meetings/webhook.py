"""The webhook by which a site tells that it changed.

PUT or POST /munis/api/update/<subdomain>/, with `Authorization: Bearer <secret>` or the bare
secret. Without a secret of our own, everything is refused.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from holdfast.errors import UserError
from holdfast.model import Json
from holdfast.pipelines.meetings.municipalities import FIELDS

_LARGEST_BODY = 1024 * 1024
#: What a site may say about itself. Where it is fetched from is the operator's to decide.
TOLD = tuple(name for name in FIELDS if name not in ("url", "zone", "subdomain"))

#: Hands a request to the pipeline's plan, in one transaction, and gives its answer.
Ask = Callable[[Mapping[str, Any]], Awaitable[Any]]


def webhook_router(ask: Ask, secret: str) -> APIRouter:
    router = APIRouter()

    @router.api_route(
        "/munis/api/update/{subdomain}/",
        methods=["PUT", "POST"],
        summary="A site says that it changed",
        operation_id="update_municipality",
    )
    async def update(subdomain: str, request: Request) -> JSONResponse:
        if not is_authorized(request.headers.get("authorization", ""), secret):
            return _error(401, "Invalid webhook secret")
        told = _told(await _body(request))
        if isinstance(told, str):
            return _error(400, told)
        try:
            answer = await ask({"webhook": {**told, "subdomain": subdomain}})
        except UserError as error:
            return _error(400, error.message)
        status = 201 if answer["action"] == "created" else 200
        shown = {"status": "success", "subdomain": subdomain, **answer}
        return JSONResponse(shown, status)

    return router


def is_authorized(header: str, secret: str) -> bool:
    """Takes as long for a nearly right secret as for a wrong one."""
    if not secret:
        return False
    kind, _, rest = header.partition(" ")
    given = rest.strip() if kind.lower() == "bearer" else header.strip()
    return hmac.compare_digest(given.encode(), secret.encode())


async def _body(request: Request) -> bytes | None:
    """None where it is larger than any honest one."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > _LARGEST_BODY:
            return None
        parts.append(part)
    return b"".join(parts)


def _told(body: bytes | None) -> Json | str:
    """What the body says, or what is wrong with it."""
    if body is None:
        return "The body is too large"
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return "Invalid JSON"
    if not isinstance(found, dict):
        return "Invalid JSON"
    if not isinstance(found.get("name"), str) or not found["name"].strip():
        return "name field is required"
    return {name: found[name] for name in TOLD if name in found}


def _error(status: int, message: str) -> JSONResponse:
    return JSONResponse({"error": message}, status)
