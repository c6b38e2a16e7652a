"""Liveness, readiness and metrics, for monitoring."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from holdfast.errors import NotAllowed
from holdfast.observe.health import METRICS_HINT
from holdfast.server.identity import PartsOf, find_person

router = APIRouter(tags=["health"])


@router.get("/healthz", response_class=PlainTextResponse, summary="Check that the process is alive")
async def healthz() -> str:
    return "ok\n"


@router.get("/readyz", response_class=PlainTextResponse, summary="Check that the server is ready")
async def readyz(parts: PartsOf) -> str:
    """Responds with 503 while the database cannot be reached."""
    await parts.store.jobs.now()
    return "ready\n"


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    summary="Get Prometheus metrics of this process",
)
async def metrics(request: Request, parts: PartsOf) -> Response:
    """Prometheus may read them with its own token, and so may every logged-in user."""
    has_token = parts.options.health.allows(request.headers.get("Authorization", ""))
    if not has_token and await find_person(request) is None:
        raise NotAllowed("log in first", METRICS_HINT, log_in=True)
    return Response(generate_latest(parts.metrics.registry), media_type=CONTENT_TYPE_LATEST)
