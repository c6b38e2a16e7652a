"""Rulings: decisions of people about items."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Path, Query, Response
from pydantic import Field

from holdfast.features.jobs.api import ScopedJob
from holdfast.features.rulings.rules import NewRuling as NewRuling
from holdfast.features.rulings.rules import counting, no_item
from holdfast.model import Job
from holdfast.pipeline import with_defaults
from holdfast.rulings import Ruling, RulingKind
from holdfast.server.dependencies import Parts
from holdfast.server.identity import Operator, PartsOf, Someone
from holdfast.server.problems import Malformed
from holdfast.server.shapes import LARGEST_ID, Shape, Text

router = APIRouter(prefix="/api/jobs/{jobId}/items/{seq}/ruling", tags=["items"])

Seq = Annotated[int, Path(ge=1, le=LARGEST_ID)]
Version = Annotated[int | None, Query(ge=0, le=2**31 - 1)]
IfMatch = Annotated[
    str | None,
    Header(max_length=30, description='The version that was seen, e.g. `"2"`; or `version`.'),
]


class RulingShape(Shape):
    version: int
    kind: RulingKind
    value: Any
    changes: dict[str, Any] = Field(
        description="Values of columns that take precedence in grid and export."
    )
    reason: str
    author: str
    at: datetime | None


class RulingState(Shape):
    version: int = Field(description="Send it with the next decision; 0: there was none.")
    ruling: RulingShape | None = Field(description="What counts now.")
    history: list[RulingShape] = Field(description="All decisions, the oldest first.")


class RulingBody(Shape):
    kind: Literal["choose", "edit", "reject"]
    value: Any = Field(default=None, examples=[{"price": 12}])
    reason: Text = ""
    version: int | None = Field(default=None, ge=0, le=2**31 - 1, description="As it was seen.")


@router.get("", summary="Show what people decided about an item")
async def show(
    job: ScopedJob, seq: Seq, person: Someone, parts: PartsOf, response: Response
) -> RulingState:
    if await parts.console.items.item(job.id, seq) is None:
        raise no_item(job, seq)
    state = await ruling_state(parts, job, seq)
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
    return await decide(parts, job, seq, new)


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
    return await decide(parts, job, seq, new)


async def decide(parts: Parts, job: Job, seq: int, new: NewRuling) -> RulingState:
    pipeline = parts.pipelines.get(job.pipeline)
    if pipeline is None or not pipeline.rules:
        await parts.console.rulings.rule(job, seq, new)
    else:
        await parts.console.rulings.rule(with_defaults(pipeline, job), seq, new, pipeline.ruling)
    return await ruling_state(parts, job, seq)


async def ruling_state(parts: Parts, job: Job, seq: int) -> RulingState:
    history = await parts.console.rulings.history(job.id, seq)
    current = counting(history)
    return RulingState(
        version=history[-1].version if history else 0,
        ruling=None if current is None else _shape(current),
        history=[_shape(each) for each in history],
    )


def _shape(ruling: Ruling) -> RulingShape:
    return RulingShape.model_validate(ruling)


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
