"""Server-sent events: counters as they change."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated

import orjson
from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse

from holdfast.api.identity import PartsOf, Person, Someone
from holdfast.api.jobs import job_shape
from holdfast.api.live import Feed
from holdfast.api.rates import Rates
from holdfast.api.shapes import Id
from holdfast.store.pages import CountedJob

router = APIRouter(prefix="/api/events", tags=["events"])

_HEADERS = {"X-Accel-Buffering": "no"}
_RETRY = b"retry: 2000\n\n"


@router.get(
    "",
    summary="Live counters of your jobs",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
async def stream(
    request: Request,
    person: Someone,
    parts: PartsOf,
    job_id: Annotated[Id | None, Query(alias="jobId")] = None,
) -> StreamingResponse:
    """An event `jobs` with the live jobs each time they were read; ends when the session does."""
    if job_id is not None:
        await parts.store.pages.job(job_id, person.scope)
    feed: Feed = request.app.state.feed
    rates: Rates = request.app.state.rates
    return StreamingResponse(
        _told(feed, rates, person, job_id), media_type="text/event-stream", headers=_HEADERS
    )


async def _told(
    feed: Feed, rates: Rates, person: Person, job_id: int | None
) -> AsyncIterator[bytes]:
    yield _RETRY
    before = None
    async with aclosing(feed.listen(person.scope, job_id)) as readings:
        async for seen in readings:
            text = _event(seen, person, rates)
            # What has not changed is not sent again; a comment keeps the connection.
            yield b": still here\n\n" if text == before else text
            before = text


def _event(seen: list[CountedJob], person: Person, rates: Rates) -> bytes:
    jobs = [job_shape(each, person, rates).model_dump(mode="json", by_alias=True) for each in seen]
    return b"event: jobs\ndata: " + orjson.dumps({"jobs": jobs}) + b"\n\n"
