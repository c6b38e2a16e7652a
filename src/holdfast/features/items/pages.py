"""Everything about one item: input, result, attempts, and why it is not being processed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Path, Response

from holdfast.errors import NotThere, UserError, error_code
from holdfast.features.items.shapes import item_detail
from holdfast.features.jobs.pages_job import VisitedJob
from holdfast.features.jobs.reasons import shown_reason
from holdfast.features.rulings.rules import NewRuling, decide
from holdfast.features.rulings.shapes import ruling_state
from holdfast.rulings import OutdatedRuling, RulingKind
from holdfast.server.forms import OperatorPost, fields, whole_number
from holdfast.server.problems import status_of
from holdfast.server.shapes import LARGEST_ID

router = APIRouter()

_KINDS = {"edit": "Edit values", "choose": "Choose", "reject": "Reject"}


@router.get("/jobs/{job_id}/items/{seq}")
async def show(visited: VisitedJob, seq: Annotated[int, Path(ge=1, le=LARGEST_ID)]) -> Response:
    return await _page(visited, seq)


async def _page(
    visited: VisitedJob,
    seq: int,
    draft: Mapping[str, str] = MappingProxyType({}),
    problem: Mapping[str, str | None] | None = None,
) -> Response:
    """Shows the item; `draft` is a decision that was refused, and `problem` the reason."""
    visit, job = visited.visit, visited.job
    item = await item_detail(job, seq, visit.parts)
    pipeline = visit.parts.pipelines.get(job.pipeline)
    own_codes = dict(pipeline.error_codes) if pipeline else {}
    return await visit.page(
        "item.html",
        here="jobs",
        job=visited.shape,
        item=item,
        known=error_code(item.error_code, own_codes) if item.error_code else None,
        why=shown_reason(job, item.why),
        decision=await ruling_state(job, seq, visit.parts),
        kinds=_KINDS,
        columns=job.columns,
        draft=draft,
        problem=problem,
    )


@router.post("/jobs/{job_id}/items/{seq}/ruling")
async def rule(
    visited: VisitedJob, visit: OperatorPost, seq: Annotated[int, Path(ge=1, le=LARGEST_ID)]
) -> Response:
    form = await fields(visit.request)
    try:
        new = _new_ruling(form, visit.person.name)
        await decide(visit.parts.console, visit.parts.pipelines, visited.job, seq, new)
    except NotThere:
        raise
    except UserError as error:
        outdated = isinstance(error, OutdatedRuling)
        hint = "Check the decision below, then decide again." if outdated else error.hint
        page = await _page(visited, seq, form, {"text": error.message, "hint": hint})
        page.status_code = status_of(error)
        return page
    revoked = new.kind is RulingKind.REVOKE
    note = "The decision is revoked." if revoked else "Your decision is saved."
    return visit.go(f"/jobs/{visited.job.id}/items/{seq}", note)


def _new_ruling(form: Mapping[str, str], author: str) -> NewRuling:
    kind = form.get("kind", "")
    if kind not in set(RulingKind):
        raise UserError(f"there is no decision {kind!r}", f"Decisions: {', '.join(RulingKind)}.")
    version = form.get("version", "0")
    known = 0 if version == "0" else whole_number(version) or 0
    value = _value(form.get("value", "")) if kind in ("choose", "edit") else None
    reason = form.get("reason", "")[:1000].replace("\0", "")
    return NewRuling(RulingKind(kind), value, reason, author, known)


def _value(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise UserError(
            f"the values are not JSON: {error.msg}", 'For example: {"price": 12}.'
        ) from None
