"""Errors as problem+json (RFC 9457): what is wrong, and what to do about it."""

from __future__ import annotations

import errno
import math
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from holdfast.errors import (
    DatabaseGone,
    Disabled,
    FilesGone,
    InputError,
    NotAllowed,
    NotThere,
    SwitchedOff,
    Throttled,
    TooLarge,
    UnfitState,
    UserError,
)

MEDIA_TYPE = "application/problem+json"
_GONE_SECONDS = 5


class Malformed(UserError):
    """A request that cannot be understood, such as one with a forged cursor."""


class WrongType(UserError):
    """A body of an unsupported type."""


class Problem(BaseModel):
    type: str = "about:blank"
    title: str
    status: int
    detail: str
    hint: str | None = None
    errors: list[dict[str, Any]] | None = None


_STATUSES: dict[type[UserError], int] = {
    Malformed: 400,
    NotThere: 404,
    UnfitState: 409,
    TooLarge: 413,
    WrongType: 415,
    InputError: 422,
    Throttled: 429,
    Disabled: 409,
    SwitchedOff: 503,
}

_DESCRIBED = {
    400: "The request cannot be understood.",
    401: "You are not logged in.",
    403: "You are not allowed to do this.",
    404: "Not found, or not visible to you.",
    409: "Not possible in the current state.",
    413: "The request body is too large.",
    415: "The type of the request body is not supported.",
    422: "A value is not valid.",
    429: "Too many requests; Retry-After says when to try again.",
    503: "Temporarily unavailable: the database or the file store cannot be reached, or the feature"
    " is off.",
    507: "The disk is full.",
}

#: For the OpenAPI document: any route may respond with these.
RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {
        "description": text,
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for status, text in _DESCRIBED.items()
}


def answer(
    status: int,
    detail: str,
    hint: str | None = None,
    errors: Sequence[dict[str, Any]] | None = None,
    headers: dict[str, str] | None = None,
) -> JSONResponse:
    problem = Problem(
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        hint=hint,
        errors=list(errors) if errors else None,
    )
    body = problem.model_dump(exclude_none=True)
    return JSONResponse(body, status, headers=headers, media_type=MEDIA_TYPE)


def add_handlers(app: FastAPI) -> None:
    app.add_exception_handler(UserError, _user_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(DatabaseGone, _gone)
    app.add_exception_handler(FilesGone, _files_gone)
    app.add_exception_handler(ClientDisconnect, _left)
    app.add_exception_handler(OSError, _system)
    app.add_exception_handler(Exception, _unexpected)


def status_of(error: UserError) -> int:
    if isinstance(error, NotAllowed):
        return 401 if error.log_in else 403
    return next((status for kind, status in _STATUSES.items() if isinstance(error, kind)), 422)


async def _user_error(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, UserError)
    headers = {}
    if isinstance(error, Throttled):
        headers["Retry-After"] = str(max(1, math.ceil(error.seconds)))
    if isinstance(error, NotAllowed) and error.log_in:
        headers["WWW-Authenticate"] = "Bearer"
    return answer(status_of(error), error.message, error.hint, headers=headers)


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    errors = [
        {"at": ".".join(map(str, item["loc"])), "message": item["msg"]} for item in error.errors()
    ]
    detail = "; ".join(f"{item['at']}: {item['message']}" for item in errors[:3])
    return answer(422, detail, errors=errors)


async def _http(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return answer(error.status_code, str(error.detail), headers=dict(error.headers or {}))


async def _gone(request: Request, error: Exception) -> JSONResponse:
    request.app.state.parts.log.warning("database.gone", error=str(error))
    headers = {"Retry-After": str(_GONE_SECONDS)}
    return answer(503, "the database cannot be reached", "Try again in a moment.", headers=headers)


async def _files_gone(request: Request, error: Exception) -> JSONResponse:
    """Responds without the reason, which is for operators: in the log, and from `holdfast
    doctor`."""
    request.app.state.parts.log.warning("files.gone", error=str(error))
    headers = {"Retry-After": str(_GONE_SECONDS)}
    return answer(503, "the file store cannot be used", "Try again in a moment.", headers=headers)


async def _left(_: Request, error: Exception) -> JSONResponse:
    """Responds to a client that disconnected while sending its request; this response is not
    read."""
    return answer(400, "the request is incomplete", "Send it again.")


async def _system(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return answer(
            507, "the disk is full; nothing was stored", "Free some space, then try again."
        )
    return await _unexpected(request, error)


async def _unexpected(request: Request, error: Exception) -> JSONResponse:
    # Not the path itself: that of a login link, or of an address for another program, is a secret.
    path = getattr(request.scope.get("route"), "path_format", "unknown")
    request.app.state.parts.log.error("request.failed", path=path, exc_info=error)
    return answer(500, "internal error; see the server log")
