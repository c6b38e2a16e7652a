"""Idempotency keys: a request that is sent again after a lost response is not carried out again."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from holdfast.api.identity import find_person, parts_of
from holdfast.api.multipart import received_form
from holdfast.api.problems import Malformed
from holdfast.console.person import Person
from holdfast.errors import DatabaseGone, UnfitState, UserError
from holdfast.store.idempotency import RequestKey, Taken, TakenKeys
from holdfast.tasks import end_tasks

__all__ = ["IdempotentRoute", "RequestKey", "request_key"]

HEADER = "Idempotency-Key"
_RENEW_SECONDS = 4.0  # a request that is silent for 20 may be taken over
_KEY = re.compile(r"[\x21-\x7e]{1,200}\Z")

_Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class IdempotentRoute(APIRoute):
    """A route whose POST accepts an idempotency key of a person."""

    def get_route_handler(self) -> _Handler:
        handler = super().get_route_handler()

        async def handle_once(request: Request) -> Response:
            key = request.headers.get(HEADER)
            person = await find_person(request) if key and request.method == "POST" else None
            if key is None or person is None:
                return await handler(request)
            if not _KEY.match(key):
                raise Malformed(f"{HEADER} must be 1 to 200 printable ASCII characters")
            return await self._answer(handler, request, person, key)

        return handle_once

    async def _answer(
        self, handler: _Handler, request: Request, person: Person, key: str
    ) -> Response:
        table = parts_of(request).store.taken_keys
        fingerprint = await _fingerprint(request)
        before = await table.begin_request(person.name, key, fingerprint)
        if before is None:
            return await _carry_out(handler, request, table, RequestKey(person.name, key))
        if not await _is_same(request, before, fingerprint):
            raise UserError(f"this {HEADER} was used for another request", "Use a new key.")
        if before.status is not None:
            return _replayed(before.status, before.body or "")
        if before.made is None:
            raise UnfitState(
                "a request with this key is still being processed", "Try again in a moment."
            )
        body = await self.describe(request, person, before.made)
        return _replayed(self.status_code or 200, body)

    async def describe(self, request: Request, person: Person, made: int) -> str:
        """The response body for what an earlier request made, if its own response was lost."""
        raise NotImplementedError


def request_key(request: Request) -> RequestKey | None:
    """The key to note in the transaction that makes something."""
    key: RequestKey | None = getattr(request.state, "request_key", None)
    return key and key._replace(content=getattr(request.state, "content", ""))


def _replayed(status: int, body: str) -> Response:
    headers = {"Idempotency-Replayed": "true"}
    return Response(body, status, media_type="application/json", headers=headers)


async def _carry_out(
    handler: _Handler, request: Request, table: TakenKeys, key: RequestKey
) -> Response:
    """A failed request had no effect, so the same key may be tried again."""
    request.state.request_key = key
    renewing = asyncio.create_task(_renew(table, key))
    try:
        response = await handler(request)
    except BaseException:
        await table.drop_request(*key[:2])
        raise
    finally:
        await end_tasks([renewing])
    text = bytes(response.body).decode()
    await table.answer_request(*key[:2], response.status_code, text)
    return response


async def _renew(table: TakenKeys, key: RequestKey) -> None:
    """An upload may take long."""
    while True:
        await asyncio.sleep(_RENEW_SECONDS)
        with suppress(DatabaseGone):
            await table.renew_request(*key[:2])


async def _is_same(request: Request, before: Taken, fingerprint: str) -> bool:
    """A form is read for this only if one with its key and length came before."""
    if before.fingerprint != fingerprint:
        return False
    if not before.content:
        return True
    async with received_form(request, parts_of(request).library.access) as form:
        return form.content == before.content


async def _fingerprint(request: Request) -> str:
    """Of the whole request; of a form, whose bytes come later, only of their number."""
    digest = hashlib.sha256(f"{request.method} {request.url.path}?{request.url.query}".encode())
    kind = request.headers.get("content-type", "").lower()
    if kind.startswith("multipart/form-data"):
        digest.update(request.headers.get("content-length", "").encode())
    else:
        digest.update(await request.body())
    return digest.hexdigest()
