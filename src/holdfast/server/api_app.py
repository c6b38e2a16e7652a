"""Assembles the API: routes, errors, middleware, and the background work of its process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import JSONResponse

from holdfast import __version__
from holdfast.features.manifest import routers_of
from holdfast.kernel.worker.chores import Chore, begin
from holdfast.server import health
from holdfast.server.dependencies import Parts
from holdfast.server.identity import Someone
from holdfast.server.middleware import (
    AllowedHosts,
    Encrypted,
    RequestLimits,
    SecurityHeaders,
    Traced,
    hosts_of,
)
from holdfast.server.problems import RESPONSES, Problem, add_handlers

_LOST_SECONDS = 2.0
_LOOK_SECONDS = 0.5
_CLEAN_UP_SECONDS = 600.0
_SCAN_SECONDS = 1.0
_SCANNERS = 3
_COUNT_SECONDS = 30.0
_DESCRIPTION = """Holdfast stores every record as a row before it works on it, works in small
checkpointed claims, and can explain the state of every row. Log in with `POST /api/session`, or
send `Authorization: Bearer TOKEN`."""


class _App(FastAPI):
    """Adds the schema of problems, which every route refers to, to the OpenAPI document."""

    def openapi(self) -> dict[str, Any]:
        document = super().openapi()
        document["components"]["schemas"]["Problem"] = Problem.model_json_schema()
        return document


_document = APIRouter(include_in_schema=False)


@_document.get("/api/openapi.json")
async def openapi_document(request: Request, person: Someone) -> JSONResponse:
    return JSONResponse(request.app.openapi())


def api_routers() -> list[APIRouter]:
    """Returns the routes for programs, in the order of the reference."""
    return [*routers_of("routes"), health.router]


def create_app(parts: Parts) -> FastAPI:
    app = _App(
        title="Holdfast",
        version=__version__,
        description=_DESCRIPTION,
        openapi_url=None,  # FastAPI would serve it to anyone
        docs_url=None,  # its page would load scripts from another host
        redoc_url=None,
        responses=RESPONSES,
        lifespan=_lifespan,
    )
    app.state.parts = parts
    for router in (*api_routers(), _document):
        app.include_router(router)
    add_handlers(app)
    server = parts.options.server
    app.add_middleware(RequestLimits, max_upload_bytes=parts.options.max_upload_bytes)
    app.add_middleware(AllowedHosts, hosts=hosts_of(server.allowed_hosts, parts.options.host))
    app.add_middleware(SecurityHeaders)
    app.add_middleware(Traced)
    if server.https:
        app.add_middleware(Encrypted)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Runs the background work while the process serves requests."""
    parts: Parts = app.state.parts
    runners, console, log = parts.runners, parts.console, parts.log

    async def clear_leftovers() -> None:
        await runners.leftovers.clear(parts.clock.now())

    chores = [
        Chore("exports", _LOOK_SECONDS, runners.exports.look),
        Chore("operations", _LOOK_SECONDS, runners.operations.look),
        Chore("lost workers", _LOST_SECONDS, runners.lost_workers.free),
        Chore("delete", _LOOK_SECONDS, parts.deletions.look),
        Chore("live", _LOOK_SECONDS, parts.feed.read),
        Chore("pending items", _COUNT_SECONDS, parts.item_lists.measure_pending),
        Chore("sessions", _CLEAN_UP_SECONDS, console.people.forget_expired),
        Chore("leftovers", _CLEAN_UP_SECONDS, clear_leftovers),
    ]
    # Several, so that a place that answers slowly does not delay the others.
    chores += [Chore("adapters", _SCAN_SECONDS, parts.scans.look) for _ in range(_SCANNERS)]
    for name, look in getattr(app.state, "looks", ()):
        chores.append(Chore(name, _LOOK_SECONDS, partial(look, parts)))
    tasks = begin(chores, parts.clock, log)
    try:
        yield
    finally:
        parts.feed.close()
        await runners.operations.stop()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
