"""Puts the API together: routes, errors, protection, and what runs behind them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import JSONResponse

from holdfast import __version__
from holdfast.api import (
    audit,
    dead_letters,
    events,
    exports,
    files,
    flags,
    gates,
    health,
    items,
    job_actions,
    job_details,
    jobs,
    kill_switches,
    operations,
    overview,
    pending,
    pipelines,
    rulings,
    schedules,
    session,
    streams,
    tokens,
    usage,
    users,
)
from holdfast.api.dependencies import Parts
from holdfast.api.identity import Someone
from holdfast.api.intake import Intake
from holdfast.api.leftovers import clear_leftovers
from holdfast.api.live import Feed
from holdfast.api.middleware import AllowedHosts, CarefulHeaders, Encrypted, RequestLimits
from holdfast.api.pending import PendingCounts
from holdfast.api.problems import RESPONSES, Problem, add_handlers
from holdfast.api.rates import Rates
from holdfast.console.export_writer import ExportWriter
from holdfast.console.operation_runner import OperationRunner
from holdfast.engine.upkeep import every

ROUTERS = (
    session, usage, users, tokens, files, pipelines, jobs, job_details, job_actions, items, rulings,
    pending,
    exports, operations, streams, gates, dead_letters, schedules, kill_switches, flags, audit,
    events, overview, health,
)  # fmt: skip

_LOOK_SECONDS = 0.5
_KICKOFFS = 2
_FORGET_SECONDS = 600.0
_ABOUT = """Holdfast keeps every record as a row first, works in small checkpointed slices, and
explains every row. Log in with `POST /api/session`, or send `Authorization: Bearer TOKEN`."""


class _Described(FastAPI):
    """Its OpenAPI document has the form of an error, which every route refers to."""

    def openapi(self) -> dict[str, Any]:
        document = super().openapi()
        document["components"]["schemas"]["Problem"] = Problem.model_json_schema()
        return document


_document = APIRouter(include_in_schema=False)


@_document.get("/api/openapi.json")
async def openapi_document(request: Request, person: Someone) -> JSONResponse:
    return JSONResponse(request.app.openapi())


def create_app(parts: Parts) -> FastAPI:
    app = _Described(
        title="Holdfast",
        version=__version__,
        description=_ABOUT,
        openapi_url=None,  # FastAPI would give it to anybody
        docs_url=None,  # its page would load scripts from elsewhere
        redoc_url=None,
        responses=RESPONSES,
        lifespan=_lifespan,
    )
    app.state.parts = parts
    _add_state(app, parts)
    for each in ROUTERS:
        app.include_router(each.router)
    app.include_router(_document)
    add_handlers(app)
    app.add_middleware(
        RequestLimits,
        max_body_bytes=parts.options.max_body_bytes,
        max_upload_bytes=parts.options.max_upload_bytes,
    )
    app.add_middleware(AllowedHosts, hosts=parts.options.allowed_hosts)
    app.add_middleware(CarefulHeaders, hsts_seconds=parts.options.hsts_seconds)
    if parts.options.https:
        app.add_middleware(Encrypted)
    return app


def _add_state(app: FastAPI, parts: Parts) -> None:
    """What the routes share within this process."""
    app.state.rates = Rates(parts.clock)
    app.state.feed = Feed(parts, app.state.rates)
    app.state.pending_counts = PendingCounts(parts.clock)
    app.state.kickoffs = asyncio.Semaphore(_KICKOFFS)
    folder = parts.files / "exports"
    app.state.exports = ExportWriter(
        parts.console, folder, parts.new_name(), parts.clock, parts.log
    )


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """What goes on behind the requests, in every process that serves the API."""
    parts: Parts = app.state.parts
    intake = Intake(parts)
    limits, name = parts.options.attempt_limits, parts.new_name()
    acting = OperationRunner(parts.console, parts.pipelines, limits, name, parts.log)
    loops = [
        every(_LOOK_SECONDS, intake.look, parts.log, "intake"),
        every(_LOOK_SECONDS, app.state.exports.look, parts.log, "exports"),
        every(_LOOK_SECONDS, acting.look, parts.log, "operations"),
        every(_LOOK_SECONDS, app.state.feed.read, parts.log, "live"),
        every(_FORGET_SECONDS, parts.console.people.forget_expired, parts.log, "sessions"),
        every(_FORGET_SECONDS, parts.console.idempotency.forget_requests, parts.log, "requests"),
        every(_FORGET_SECONDS, partial(clear_leftovers, parts), parts.log, "leftovers"),
    ]
    tasks = [asyncio.create_task(loop) for loop in loops]
    try:
        yield
    finally:
        app.state.feed.close()
        await acting.stop()
        await intake.stop()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
