"""Server-sent events: counters as they change."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated

import orjson
from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse

from holdfast.api.identity import PartsOf, Person, Someone, look_up, parts_of
from holdfast.api.jobs import job_shape
from holdfast.api.live import Feed
from holdfast.api.rates import Rates
from holdfast.api.shapes import Id
from holdfast.console.jobs import CountedJob
from holdfast.errors import DatabaseGone

router = APIRouter(prefix="/api/events", tags=["events"])

_HEADERS = {"X-Accel-Buffering": "no"}
_RETRY = b"retry: 2000\n\n"
#: How often it is asked whether the person may still listen.
_CHECK_SECONDS = 10.0


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
        await parts.console.jobs.job(job_id, person.scope)
    feed: Feed = request.app.state.feed
    feed.check_room(person.name)
    return StreamingResponse(
        _told(request, person, job_id), media_type="text/event-stream", headers=_HEADERS
    )


async def _told(request: Request, person: Person, job_id: int | None) -> AsyncIterator[bytes]:
    yield _RETRY
    feed: Feed = request.app.state.feed
    rates: Rates = request.app.state.rates
    clock = parts_of(request).clock
    before, checked_at = None, clock.monotonic()
    async with aclosing(feed.listen(person.name, person.scope, job_id)) as readings:
        async for seen in readings:
            if clock.monotonic() >= checked_at + _CHECK_SECONDS:
                checked_at = clock.monotonic()
                if not await _is_still(person, request):
                    return
            text = _event(seen, person, rates)
            # What has not changed is not sent again; a comment keeps the connection.
            yield b": still here\n\n" if text == before else text
            before = text


async def _is_still(person: Person, request: Request) -> bool:
    """Neither logged out nor of another role by now. Who cannot be known, is not."""
    try:
        return await look_up(request) == person
    except DatabaseGone:
        return False


def _event(seen: list[CountedJob], person: Person, rates: Rates) -> bytes:
    jobs = [job_shape(each, person, rates).model_dump(mode="json", by_alias=True) for each in seen]
    return b"event: jobs\ndata: " + orjson.dumps({"jobs": jobs}) + b"\n\n"
