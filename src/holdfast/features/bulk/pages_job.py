"""Items of one job, as people have them processed again or skipped; a dialog first shows how many
it affects."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from holdfast.errors import UserError
from holdfast.features.bulk.bulk import BulkRequest, default_statuses
from holdfast.features.items.filtering import GridFilter, parse_filter
from holdfast.features.items.pages_grid import columns_of
from holdfast.features.jobs.pages_job import JobPost, JobVisit, VisitedJob
from holdfast.model import ItemStatus
from holdfast.server.formatting import item_count
from holdfast.server.forms import fields, reason_in, values_of, whole_number

router = APIRouter(prefix="/jobs/{job_id}")

_FINAL = (ItemStatus.ERROR, ItemStatus.NOT_FOUND, ItemStatus.SKIPPED, ItemStatus.DONE)
_MOST_ROWS = 10_000


@router.get("/reprocess")
async def reprocess_dialog(visited: VisitedJob) -> Response:
    return await visited.dialog("dialogs/reprocess.html", statuses=_FINAL)


@router.get("/bulk")
async def bulk_dialog(
    visited: VisitedJob,
    kind: Annotated[str, Query(pattern="^(reprocess|skip)$")],
    q: Annotated[str, Query(max_length=500)] = "",
    seqs: Annotated[str, Query(max_length=100_000)] = "",
) -> Response:
    """Shows how many items it would affect: the selected rows, or everything that matches."""
    template = "dialogs/bulk.html"
    rows = _rows(seqs)
    if rows:
        return await visited.dialog(template, kind=kind, q="", seqs=seqs, count=len(rows))
    bulk, person = visited.visit.parts.bulk, visited.visit.person
    request = _bulk_request(visited, kind, parse_filter(q, columns_of(visited)))
    matches = (await bulk.preview(request, person)).matches
    context = {
        "count": matches.count,
        "exact": matches.exact,
        "searched": matches.examined,
        "statuses": request.items.statuses,
        "permanent": await _permanent(visited, request),
    }
    return await visited.dialog(template, kind=kind, q=q, seqs="", **context)


@router.post("/bulk")
async def bulk(visited: JobPost) -> Response:
    visit = visited.visit
    form = await fields(visit.request)
    kind, rows = form.get("kind", ""), _rows(form.get("seqs", ""))
    if rows and kind == "skip":
        return await _skip_rows(visited, rows, reason_in(form))
    if rows:
        return await _reprocess_rows(visited, rows, "reset_attempts" in form)
    text = form.get("q") or f"status:{','.join(await _chosen_statuses(visited))}"
    options = {
        "reset_attempts": "reset_attempts" in form,
        "include_permanent": "include_permanent" in form,
        "items_per_second": whole_number(form.get("items_per_second")),
        "reason": reason_in(form),
    }
    request = _bulk_request(visited, kind, parse_filter(text, columns_of(visited)), **options)
    operation = await visit.parts.bulk.start(request, visit.person)
    return visit.go(f"/operations/{operation.id}")


async def _reprocess_rows(visited: JobVisit, rows: list[int], reset_attempts: bool) -> Response:
    visit, job = visited.visit, visited.job
    control = visit.parts.control(visit.person.name)
    opened = await control.reprocess_items(job.id, rows, reset_attempts)
    unchanged = len(set(rows)) - opened
    kept = "still open or removed by retention" if job.removed else "still open"
    more = f" {unchanged:,} were {kept} and left unchanged." if unchanged else ""
    return visit.go(f"/jobs/{job.id}", f"{item_count(opened)} will be processed again.{more}")


async def _skip_rows(visited: JobVisit, rows: list[int], reason: str) -> Response:
    visit, job = visited.visit, visited.job
    skipped = await visit.parts.control(visit.person.name).skip_items(job.id, rows, reason)
    unchanged = len(set(rows)) - skipped
    more = f" {unchanged:,} were finished or in progress and left unchanged." if unchanged else ""
    return visit.go(f"/jobs/{job.id}", f"{item_count(skipped)} skipped.{more}")


async def _permanent(visited: JobVisit, request: BulkRequest) -> int:
    """Estimates how many of the errors are permanent, and left unchanged by default."""
    of_errors = request.kind == "reprocess" and ItemStatus.ERROR in request.items.statuses
    if not of_errors or request.values:
        return 0  # groups of errors do not know the values of columns
    return await visited.visit.parts.bulk.permanent_errors(visited.job, request.items.code)


async def _chosen_statuses(visited: JobVisit) -> list[str]:
    statuses = await values_of(visited.visit.request, "statuses")
    if not statuses:
        raise UserError("no status is selected", "Select at least one.")
    return statuses


def _bulk_request(visited: JobVisit, kind: str, filter: GridFilter, **options: Any) -> BulkRequest:
    if filter.is_empty:
        raise UserError("the filter is empty", "Name the items, for example: status:ERROR.")
    kind = "skip" if kind == "skip" else "reprocess"
    items = filter.items
    statuses = default_statuses(kind, items)
    return BulkRequest(
        kind=kind,
        job_ids=[visited.job.id],
        items=replace(items, statuses=statuses),
        values=filter.value_words,
        **options,
    )


def _rows(text: str) -> list[int]:
    words = [word for word in text.split(",") if word]
    if len(words) > _MOST_ROWS:
        raise UserError(f"more than {_MOST_ROWS:,} rows are selected", "Use the filter instead.")
    if not all(word.isascii() and word.isdecimal() and len(word) < 16 for word in words):
        raise UserError("the selected rows are not valid", "Select them again.")
    return [int(word) for word in words]
