"""Rulings: decisions of people about items."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Response

from holdfast.features.jobs.scoped_job import ScopedJob
from holdfast.features.rulings.rules import NewRuling, decide, no_item
from holdfast.features.rulings.shapes import RulingBody, RulingState, ruling_state
from holdfast.model import Job
from holdfast.rulings import RulingKind
from holdfast.server.dependencies import Parts
from holdfast.server.identity import Operator, PartsOf, Someone
from holdfast.server.problems import Malformed
from holdfast.server.shapes import LARGEST_ID, Text

router = APIRouter(prefix="/api/jobs/{jobId}/items/{seq}/ruling", tags=["items"])

Seq = Annotated[int, Path(ge=1, le=LARGEST_ID)]
Version = Annotated[int | None, Query(ge=0, le=2**31 - 1)]
IfMatch = Annotated[
    str | None,
    Header(max_length=30, description='The version that was seen, e.g. `"2"`; or `version`.'),
]


@router.get("", summary="Show what people decided about an item")
async def show(
    job: ScopedJob, seq: Seq, person: Someone, parts: PartsOf, response: Response
) -> RulingState:
    if await parts.console.items.item(job.id, seq) is None:
        raise no_item(job, seq)
    state = await ruling_state(job, seq, parts)
    response.headers["ETag"] = f'"{state.version}"'
    return state


@router.put("", summary="Decide about an item")
async def rule(
    job: ScopedJob,
    seq: Seq,
    body: RulingBody,
    person: Operator,
    parts: PartsOf,
    if_match: IfMatch = None,
) -> RulingState:
    """A decision is refused with 409 if another user has decided since that version."""
    version = _version(body.version, if_match)
    new = NewRuling(RulingKind(body.kind), body.value, body.reason, person.name, version)
    return await _decided(parts, job, seq, new)


@router.delete("", summary="Revoke the decision about an item")
async def revoke(
    job: ScopedJob,
    seq: Seq,
    person: Operator,
    parts: PartsOf,
    version: Version = None,
    reason: Annotated[Text, Query()] = "",
    if_match: IfMatch = None,
) -> RulingState:
    """The pipeline's own result counts again; the history stays."""
    known = _version(version, if_match)
    new = NewRuling(RulingKind.REVOKE, None, reason, person.name, known)
    return await _decided(parts, job, seq, new)


async def _decided(parts: Parts, job: Job, seq: int, new: NewRuling) -> RulingState:
    await decide(parts.console, parts.pipelines, job, seq, new)
    return await ruling_state(job, seq, parts)


def _version(given: int | None, if_match: str | None) -> int:
    if given is not None:
        return given
    text = (if_match or "").strip().removeprefix("W/").strip('"')
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise Malformed(
            "the version of the decisions before is missing",
            "Name it as `version` or in If-Match; GET shows it, 0 means none.",
        )
    return int(text)
