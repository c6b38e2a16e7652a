"""Idempotency keys: a request that is sent again, after a lost answer, is not carried out again."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from holdfast.api.identity import Person, find_person, parts_of
from holdfast.api.problems import Malformed
from holdfast.errors import UnfitState, UserError
from holdfast.store.request_table import RequestTable

HEADER = "Idempotency-Key"
_KEY = re.compile(r"[\x21-\x7e]{1,200}\Z")
_SERVER_ERROR = 500

_Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class AnsweredOnce(APIRoute):
    """A route whose POST may carry an idempotency key; kept for a day, for each person apart."""

    def get_route_handler(self) -> _Handler:
        handler = super().get_route_handler()

        async def answered_once(request: Request) -> Response:
            key = request.headers.get(HEADER)
            person = await find_person(request) if key and request.method == "POST" else None
            if key is None or person is None:
                return await handler(request)
            if not _KEY.match(key):
                raise Malformed(f"{HEADER} must be 1 to 200 printable characters")
            return await _answer(handler, request, person, key)

        return answered_once


async def _answer(handler: _Handler, request: Request, person: Person, key: str) -> Response:
    table = parts_of(request).store.requests
    fingerprint = await _fingerprint(request)
    before = await table.begin_request(person.name, key, fingerprint)
    if before is None:
        return await _carry_out(handler, request, table, person.name, key)
    if before.fingerprint != fingerprint:
        raise UserError(f"this {HEADER} was used for another request", "Use a new one.")
    if before.status is None:
        raise UnfitState("the request with this key is being answered", "Ask again soon.")
    return Response(
        before.body or "",
        before.status,
        media_type="application/json",
        headers={"Idempotency-Replayed": "true"},
    )


async def _carry_out(
    handler: _Handler, request: Request, table: RequestTable, name: str, key: str
) -> Response:
    """An error had no effect, so the same key may try again."""
    try:
        response = await handler(request)
    except BaseException:
        await table.drop_request(name, key)
        raise
    text = bytes(response.body).decode()
    await table.answer_request(name, key, response.status_code, text)
    return response


async def _fingerprint(request: Request) -> str:
    """Of what was asked; a file's bytes are not read for it, only how many there are."""
    digest = hashlib.sha256(f"{request.method} {request.url.path}?{request.url.query}".encode())
    kind = request.headers.get("content-type", "")
    if kind.startswith("multipart/"):
        digest.update(request.headers.get("content-length", "").encode())
    else:
        digest.update(await request.body())
    return digest.hexdigest()
