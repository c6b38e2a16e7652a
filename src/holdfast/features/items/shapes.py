"""Items as programs and people see them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import orjson
from pydantic import Field

from holdfast.features.items.item_lists import summary
from holdfast.features.items.items import ItemView
from holdfast.features.jobs.why import why_item_waits
from holdfast.features.rulings.rules import no_item
from holdfast.model import OPEN, ItemStatus, Job, JobState
from holdfast.server.dependencies import Parts
from holdfast.server.shapes import Shape, Why


class ItemShape(Shape):
    seq: int
    status: ItemStatus
    input_summary: str = Field(examples=["Oak chair, ACME"])
    row: dict[str, Any] = Field(description="The values of `columns`, as in an export.")
    result_too_large: bool = Field(description="If true, get the item itself to see its result.")
    error_code: str | None
    error_message: str | None
    attempts: int
    locked_by: str | None = Field(description="The worker that is processing it.")
    pipeline: str = Field(examples=["prices"])
    updated_at: datetime | None


class AttemptShape(Shape):
    number: int
    status: ItemStatus
    result: Any
    error_code: str | None
    error_message: str | None
    seconds: float
    worker: str
    at: datetime | None


class EventShape(Shape):
    actor: str
    action: str
    subject: str
    detail: dict[str, Any]
    at: datetime | None


class EvidenceShape(Shape):
    title: str
    at: datetime
    detail: dict[str, Any]
    link: str | None = Field(description="Path of the page that shows it.")


class ItemDetail(Shape):
    job_id: int
    seq: int
    key: str | None
    status: ItemStatus
    input: Any
    normalized: Any
    result: Any
    error_code: str | None
    error_message: str | None
    tries: int
    attempts: int
    misses: int
    seconds: float | None
    locked_by: str | None
    updated_at: datetime | None
    attempts_before: list[AttemptShape] = Field(description="Earlier attempts, in order.")
    dead_letters: list[dict[str, Any]]
    evidence: list[EvidenceShape] = Field(description="What its pipeline keeps of it.")
    events: list[EventShape] = Field(description="What people did to it, oldest first.")
    why: Why | None = Field(description="Why it is not being processed.")


async def item_detail(job: Job, seq: int, parts: Parts) -> ItemDetail:
    item = await parts.console.items.item(job.id, seq)
    if item is None:
        raise no_item(job, seq)
    attempts = [
        AttemptShape(**attempt | {"result": _parsed(attempt["result"])})
        for attempt in await parts.console.items.attempts(job.id, seq)
    ]
    events = [
        EventShape(
            actor=event["actor"],
            action=event["action"],
            subject=event["subject"],
            detail=orjson.loads(event["detail"]),
            at=event["at"],
        )
        for event in await parts.console.audit.of_item(job.id, seq)
    ]
    reason = await why_item_waits(parts.console, job, item)
    status, code, message = _status_of(item, job)
    return ItemDetail(
        job_id=job.id,
        seq=seq,
        key=item["key"],
        status=status,
        input=_parsed(item["input"]),
        normalized=_parsed(item["normalized"]),
        result=_parsed(item["result"]),
        error_code=code,
        error_message=message,
        tries=item["tries"] or 0,
        attempts=(item["attempts"] or 0) + (item["misses"] or 0),
        misses=item["misses"] or 0,
        seconds=item["seconds"],
        locked_by=item["worker"],
        updated_at=item["updated_at"],
        attempts_before=attempts,
        dead_letters=await parts.console.dead_letters.of_item(job.id, seq),
        evidence=await _evidence(job, seq, parts),
        events=events,
        why=None if reason is None else Why(kind=reason.kind, text=reason.text, until=reason.until),
    )


async def _evidence(job: Job, seq: int, parts: Parts) -> list[EvidenceShape]:
    """Returns the pipeline's evidence; none if this server does not offer the job's pipeline."""
    pipeline = parts.pipelines.get(job.pipeline)
    if pipeline is None:
        return []
    return [
        EvidenceShape(title=kept.title, at=kept.at, detail=dict(kept.detail), link=kept.link)
        for kept in await pipeline.evidence(parts.fetch, job.id, seq)
    ]


def _status_of(item: dict[str, Any], job: Job) -> tuple[ItemStatus, str | None, str | None]:
    """Returns status, code and message. In a cancelled job, open items count as SKIPPED."""
    status = ItemStatus(item["status"] or ItemStatus.PENDING)
    if status in OPEN and job.state is JobState.CANCELLED:
        return ItemStatus.SKIPPED, "CANCELLED", "the job was cancelled"
    return status, item["error_code"], item["error_message"]


def item_shape(item: ItemView, pipeline: str, row: dict[str, Any]) -> ItemShape:
    return ItemShape(
        seq=item.seq,
        status=item.status,
        input_summary=summary(item.input),
        row=row,
        result_too_large=item.status is ItemStatus.DONE and item.result is None,
        error_code=item.error_code,
        error_message=item.error_message,
        attempts=item.attempts,
        locked_by=item.worker,
        pipeline=pipeline,
        updated_at=item.updated_at,
    )


def _parsed(text: str | None) -> Any:
    return None if text is None else orjson.loads(text)
