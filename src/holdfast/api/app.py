"""Puts the API together: routes, errors, protection, and what runs behind them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from holdfast import __version__
from holdfast.api import (
    files,
    flags,
    health,
    jobs,
    orders,
    pipelines,
    session,
    tokens,
    users,
)
from holdfast.api.intake import Intake
from holdfast.api.parts import Parts
from holdfast.api.problems import RESPONSES, Problem, add_handlers
from holdfast.api.protection import BodyLimit, CarefulHeaders
from holdfast.api.rates import Rates
from holdfast.engine.upkeep import every

ROUTERS = (session, users, tokens, files, pipelines, jobs, orders, flags, health)

_LOOK_SECONDS = 0.5
_FORGET_SECONDS = 600.0
_ABOUT = """Holdfast keeps every record as a row first, works in small checkpointed slices, and
explains every row. Log in with `POST /api/session`, or send `Authorization: Bearer TOKEN`."""


def create_app(parts: Parts) -> FastAPI:
    app = FastAPI(
        title="Holdfast",
        version=__version__,
        description=_ABOUT,
        openapi_url="/api/openapi.json",
        docs_url=None,  # its page would load scripts from elsewhere
        redoc_url=None,
        responses=RESPONSES,
        lifespan=_lifespan,
    )
    app.state.parts = parts
    app.state.rates = Rates(parts.clock)
    for each in ROUTERS:
        app.include_router(each.router)
    add_handlers(app)
    _describe_problems(app)
    app.add_middleware(
        BodyLimit,
        max_body_bytes=parts.options.max_body_bytes,
        max_upload_bytes=parts.options.max_upload_bytes,
    )
    app.add_middleware(CarefulHeaders)
    return app


def _describe_problems(app: FastAPI) -> None:
    """The form of an error, which every route's description refers to."""
    document = app.openapi()
    document["components"]["schemas"]["Problem"] = Problem.model_json_schema()


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """What goes on behind the requests, in every process that serves the API."""
    parts: Parts = app.state.parts
    intake = Intake(parts)
    loops = [
        every(_LOOK_SECONDS, intake.look, parts.log, "intake"),
        every(_FORGET_SECONDS, parts.store.people.forget_expired, parts.log, "sessions"),
        every(_FORGET_SECONDS, parts.store.requests.forget_requests, parts.log, "requests"),
    ]
    tasks = [asyncio.create_task(loop) for loop in loops]
    try:
        yield
    finally:
        await intake.stop()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
