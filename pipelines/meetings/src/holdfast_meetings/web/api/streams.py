"""The streams of meetings: how far each collection was read, and how to resume them."""

from __future__ import annotations

import orjson
from fastapi import APIRouter

from holdfast.errors import NotAllowed, NotThere, UnfitState
from holdfast.features.jobs.stream_shapes import SliceShape
from holdfast.model import JobState, Json
from holdfast.server.cursors import Cursors
from holdfast.server.dependencies import Parts
from holdfast.server.identity import Operator, PartsOf, Person, Someone
from holdfast.server.shapes import Id, Shape
from holdfast_meetings.options import DocumentType, Mode
from holdfast_meetings.web.api.municipalities import BackfillOrder, order
from holdfast_meetings.web.api.shapes import (
    After,
    CountsShape,
    Decisions,
    DecisionShape,
    PageSize,
    StreamDetail,
    StreamList,
    StreamShape,
    reads_of,
    streams_of,
)

router = APIRouter(prefix="/api/meetings/streams", tags=["meetings"])

_READ_TOGETHER = 200


class Failed(Shape):
    """Which failed streams are meant: all, or those of a mode or a type."""

    mode: Mode | None = None
    type: DocumentType | None = None


class Retried(Shape):
    streams: int
    decisions: list[DecisionShape]


@router.get("", summary="List the streams of meetings")
async def index(
    person: Someone,
    parts: PartsOf,
    status: JobState | None = None,
    mode: Mode | None = None,
    type: DocumentType | None = None,
    page_size: PageSize = 100,
    after: After = None,
) -> StreamList:
    """The status is that of the latest job of the stream."""
    bound = {"status": status, "mode": mode, "type": type}
    cursors = Cursors(parts.secret, "meeting streams", person.name, bound)
    rows = await streams_of(parts).index(
        cursors.read(after) or 0,
        page_size + 1,
        owner=person.scope,
        mode=mode,
        document_type=type,
        job_state=status,
    )
    shown = [shape_of(row) for row in rows[:page_size]]
    more = cursors.write(shown[-1].id) if len(rows) > page_size else None
    return StreamList(streams=shown, next=more)


@router.get("/{stream_id}", summary="Show a stream with its latest slices")
async def show(stream_id: Id, person: Someone, parts: PartsOf) -> StreamDetail:
    stream = await _find(stream_id, person, parts)
    slices = [SliceShape(**row._asdict()) for row in await parts.store.streams.slices(stream_id)]
    counts = CountsShape(**await reads_of(parts).counts(stream.job_id))
    return StreamDetail(stream=stream, counts=counts, slices=slices)


@router.post("/{stream_id}/retry", summary="Resume a failed stream")
async def retry(stream_id: Id, person: Operator, parts: PartsOf) -> Decisions:
    """Continues from its checkpoint, in its own mode."""
    stream = await _find(stream_id, person, parts)
    if stream.job_state is not JobState.FAILED:
        raise UnfitState(f"job {stream.job_id} is {stream.job_state}", "There is nothing to retry.")
    return await order(stream.subdomain, _again(stream), person, parts)


@router.post("/retry", summary="Resume all failed streams")
async def retry_failed(body: Failed, person: Operator, parts: PartsOf) -> Retried:
    """Each continues from its checkpoint, in its own mode."""
    decisions: list[DecisionShape] = []
    for stream in await failed_streams(body, person, parts):
        try:
            decisions += (await order(stream.subdomain, _again(stream), person, parts)).decisions
        except (NotAllowed, UnfitState):
            continue  # a stream of the municipality belongs to another owner, or cannot be read
    return Retried(streams=len(decisions), decisions=decisions)


async def failed_streams(body: Failed, person: Person, parts: Parts) -> list[StreamShape]:
    streams: list[StreamShape] = []
    while True:
        page = await streams_of(parts).index(
            streams[-1].id if streams else 0,
            _READ_TOGETHER,
            owner=person.scope,
            mode=body.mode,
            document_type=body.type,
            job_state=JobState.FAILED,
        )
        streams += [shape_of(row) for row in page]
        if len(page) < _READ_TOGETHER:
            return streams


async def _find(stream_id: int, person: Person, parts: Parts) -> StreamShape:
    rows = await streams_of(parts).index(stream_id - 1, 1, owner=person.scope)
    if not rows or rows[0]["id"] != stream_id:
        raise NotThere(f"there is no stream {stream_id} of meetings", "See the list of streams.")
    return shape_of(rows[0])


def _again(stream: StreamShape) -> BackfillOrder:
    if stream.mode not in set(Mode) or stream.document_type not in set(DocumentType):
        raise UnfitState(
            f"stream {stream.id} is of an unknown mode or type", "Cancel its job; start a backfill."
        )
    return BackfillOrder(mode=Mode(stream.mode), types=[DocumentType(stream.document_type)])


def shape_of(stream: Json) -> StreamShape:
    cursor = None if stream["cursor"] is None else orjson.loads(stream["cursor"])
    known = {name: stream[name] for name in StreamShape.model_fields}
    return StreamShape(**{**known, "cursor": cursor})
