"""Live counters as server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated

import orjson
from fastapi import APIRouter, Depends, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from holdfast.errors import DatabaseGone
from holdfast.features.accounts.person import Person
from holdfast.features.jobs.live import Rates
from holdfast.features.jobs.reads import CountedJob
from holdfast.features.jobs.shapes import job_shape
from holdfast.server.identity import PartsOf, Someone, look_up
from holdfast.server.shapes import Id

router = APIRouter(prefix="/api/events", tags=["events"])

_RETRY_MS = 2000
#: How often to check whether the person may still listen.
_CHECK_SECONDS = 10.0

JobId = Annotated[Id | None, Query(alias="jobId")]


async def _require_access(person: Someone, parts: PartsOf, job_id: JobId = None) -> None:
    """Refuses a listener before the response starts: afterwards it is too late for an error."""
    if job_id is not None:
        await parts.console.jobs.job(job_id, person.scope)
    parts.feed.require_room(person.name)


@router.get(
    "",
    summary="Stream live counters of your jobs",
    response_class=EventSourceResponse,
    dependencies=[Depends(_require_access)],
)
async def stream(
    request: Request, person: Someone, parts: PartsOf, job_id: JobId = None
) -> AsyncIterator[ServerSentEvent]:
    """Sends an event `jobs` with the live jobs whenever they change; ends with the session."""
    yield ServerSentEvent(retry=_RETRY_MS)
    sent, checked_at = None, parts.clock.monotonic()
    async with aclosing(parts.feed.listen(person.name, person.scope, job_id)) as readings:
        async for jobs in readings:
            if parts.clock.monotonic() >= checked_at + _CHECK_SECONDS:
                checked_at = parts.clock.monotonic()
                if not await _is_unchanged(person, request):
                    return
            text = _text(jobs, person, parts.rates)
            if text != sent:
                yield ServerSentEvent(event="jobs", raw_data=text)
                sent = text


async def _is_unchanged(person: Person, request: Request) -> bool:
    """Whether the person is still logged in with the same role.

    If that cannot be checked, the answer is no."""
    try:
        return await look_up(request) == person
    except DatabaseGone:
        return False


def _text(jobs: list[CountedJob], person: Person, rates: Rates) -> str:
    shapes = [job_shape(job, person, rates).model_dump(mode="json", by_alias=True) for job in jobs]
    return orjson.dumps({"jobs": shapes}).decode()
