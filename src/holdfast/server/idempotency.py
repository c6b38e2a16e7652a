"""Idempotency keys: a request that is sent again after a lost response is not carried out again."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from holdfast.errors import DatabaseGone, UnfitState, UserError
from holdfast.features.accounts.person import Person
from holdfast.kernel.arrivals.idempotency import RequestKey, Taken
from holdfast.kernel.worker.patience import patiently
from holdfast.server.dependencies import Parts
from holdfast.server.identity import find_person, parts_of
from holdfast.server.multipart import received_form
from holdfast.server.problems import Malformed

__all__ = ["IdempotentRoute", "RequestKey", "request_key"]

HEADER = "Idempotency-Key"
_KEY = re.compile(r"[\x21-\x7e]{1,200}\Z")

_DROPPING: set[asyncio.Task[None]] = set()

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
        parts = parts_of(request)
        fingerprint = await _fingerprint(request)
        before = await parts.store.taken_keys.begin_request(
            person.name, key, fingerprint, parts.name
        )
        if before is None:
            return await _carry_out(handler, request, parts, RequestKey(person.name, key))
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
        """Returns the response body for what an earlier request created, if its own response was
        lost."""
        raise NotImplementedError


def request_key(request: Request) -> RequestKey | None:
    """Returns the key to note in the transaction that creates something."""
    key: RequestKey | None = getattr(request.state, "request_key", None)
    return key and key._replace(content=getattr(request.state, "content", ""))


def _replayed(status: int, body: str) -> Response:
    headers = {"Idempotency-Replayed": "true"}
    return Response(body, status, media_type="application/json", headers=headers)


async def _carry_out(
    handler: _Handler, request: Request, parts: Parts, key: RequestKey
) -> Response:
    """Carries out a request. A failed one had no effect, so the same key may be tried again."""
    request.state.request_key = key
    keys = parts.store.taken_keys
    try:
        response = await handler(request)
    except BaseException:
        await _drop(parts, key)
        raise
    text = bytes(response.body).decode()
    await keys.answer_request(*key[:2], response.status_code, text)
    return response


async def _drop(parts: Parts, key: RequestKey) -> None:
    """Frees the key, in the background if the database is gone: the client need not wait for it."""
    drop = partial(parts.store.taken_keys.drop_request, *key[:2])
    try:
        await drop()
    except DatabaseGone:
        dropping = asyncio.create_task(patiently(drop, parts.log, parts.rng))
        _DROPPING.add(dropping)
        dropping.add_done_callback(_DROPPING.discard)


async def _is_same(request: Request, before: Taken, fingerprint: str) -> bool:
    """Whether it is the same request.

    A form is read for this only if one with its key and length came before."""
    if before.fingerprint != fingerprint:
        return False
    if not before.content:
        return True
    async with received_form(request, parts_of(request).library.access) as form:
        return form.content == before.content


async def _fingerprint(request: Request) -> str:
    """Hashes the whole request.

    For a form, whose body has not arrived yet, only its length counts."""
    digest = hashlib.sha256(f"{request.method} {request.url.path}?{request.url.query}".encode())
    kind = request.headers.get("content-type", "").lower()
    if kind.startswith("multipart/form-data"):
        digest.update(request.headers.get("content-length", "").encode())
    else:
        digest.update(await request.body())
    return digest.hexdigest()
