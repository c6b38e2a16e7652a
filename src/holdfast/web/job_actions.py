"""What people order a job to do: asked in numbers first where it cannot be taken back."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response

from holdfast.api import job_actions as api
from holdfast.api import job_details, operations
from holdfast.api.operations import Filter, NewOperationBody
from holdfast.console.operation_runner import permanent_codes
from holdfast.errors import UserError
from holdfast.model import FINAL, ItemStatus
from holdfast.web.filtering import Wanted, wanted
from holdfast.web.forms import formed, whole_number
from holdfast.web.job import Shown, ShownJob
from holdfast.web.visit import Changing, fields, values_of

router = APIRouter(prefix="/jobs/{job_id}")

_KICKOFF_MS = 3000
_AGAIN = (ItemStatus.ERROR, ItemStatus.NOT_FOUND, ItemStatus.SKIPPED, ItemStatus.DONE)
_MOST_SEQS = 10_000


async def _changed_job(visit: Changing, shown: ShownJob) -> Shown:
    return shown


ChangedJob = Annotated[Shown, Depends(_changed_job)]


@router.post("/pause")
async def pause(shown: ChangedJob) -> Response:
    visit, job = shown.visit, shown.job
    await api.pause(job, visit.request, visit.person, visit.parts)
    note = "Paused. No further item starts; what runs may settle."
    return visit.go(f"/jobs/{job.id}", note, f"/jobs/{job.id}/resume")


@router.post("/resume")
async def resume(shown: ChangedJob) -> Response:
    visit, job = shown.visit, shown.job
    form = await fields(visit.request)
    caps = api.Resume(max_items=whole_number(form.get("max_items")))
    await api.resume(job, visit.request, visit.person, visit.parts, caps)
    return visit.go(f"/jobs/{job.id}", "It goes on.")


@router.get("/caps")
async def ask_caps(shown: ShownJob) -> Response:
    return await _ask(shown, "ask/caps.html")


@router.get("/cancel")
async def ask_cancel(shown: ShownJob) -> Response:
    return await _ask(shown, "ask/cancel.html")


@router.post("/cancel")
async def cancel(shown: ChangedJob) -> Response:
    visit, job = shown.visit, shown.job
    told = await api.cancel(job, visit.request, visit.person, visit.parts)
    note = f"Cancelled. {told.counters.skipped:,} items count as skipped."
    return visit.go(f"/jobs/{job.id}", note)


@router.post("/kickoff")
async def kickoff(shown: ChangedJob) -> Response:
    visit, job = shown.visit, shown.job
    told = await api.kickoff(job, visit.request, visit.person, visit.parts, _KICKOFF_MS)
    return visit.go(f"/jobs/{job.id}", f"{told.worked:,} items were finished meanwhile.")


@router.get("/reprocess")
async def ask_reprocess(shown: ShownJob) -> Response:
    return await _ask(shown, "ask/reprocess.html", statuses=_AGAIN)


@router.get("/bulk")
async def ask_bulk(
    shown: ShownJob,
    kind: Annotated[str, Query(pattern="^(reprocess|skip)$")],
    q: Annotated[str, Query(max_length=500)] = "",
    seqs: Annotated[str, Query(max_length=100_000)] = "",
) -> Response:
    """How many items it would touch: the chosen rows, or everything that matches."""
    chosen = _seqs(seqs)
    if chosen:
        return await _ask(shown, "ask/bulk.html", kind=kind, q="", seqs=seqs, count=len(chosen))
    body = _operation(shown, kind, wanted(q, shown.columns), {})
    preview = await operations.preview(body, shown.visit.person, shown.visit.parts)
    told = {
        "count": preview.count,
        "exact": preview.exact,
        "looked": preview.looked,
        "statuses": body.filter.statuses,
        "permanent": await _permanent(shown, body) if kind == "reprocess" else 0,
    }
    return await _ask(shown, "ask/bulk.html", kind=kind, q=q, seqs="", **told)


@router.post("/bulk")
async def bulk(shown: ChangedJob) -> Response:
    visit, job = shown.visit, shown.job
    form = await fields(visit.request)
    chosen = _seqs(form.get("seqs", ""))
    if chosen and form.get("kind") == "skip":
        return await _skip(shown, chosen, form.get("reason", "")[:1000])
    if chosen:
        control = visit.parts.control(visit.person.name)
        opened = await control.reprocess_items(job.id, chosen, "reset_attempts" in form)
        left = len(set(chosen)) - opened
        told = f" {left:,} were open still and left alone." if left else ""
        return visit.go(f"/jobs/{job.id}", f"{opened:,} items are open again.{told}")
    said = form.get("q") or f"status:{','.join(await _values(visit, 'statuses'))}"
    body = _operation(shown, form.get("kind", ""), wanted(said, shown.columns), form)
    begun = await operations.make(body, visit.request, visit.person, visit.parts)
    return visit.go(f"/operations/{begun.id}")


async def _skip(shown: Shown, chosen: list[int], reason: str) -> Response:
    visit, job = shown.visit, shown.job
    body = formed(api.SkipItems, {"item_ids": chosen, "reason": reason})
    told = await api.skip(job, body, visit.person, visit.parts)
    left = f" {told.left:,} were finished or in work and left alone." if told.left else ""
    return visit.go(f"/jobs/{job.id}", f"{told.skipped:,} items are skipped.{left}")


async def _permanent(shown: Shown, body: NewOperationBody) -> int:
    """How many of the errors never pass, about, and are left alone unless asked for."""
    if ItemStatus.ERROR not in body.filter.statuses or body.filter.values:
        return 0  # what columns hold is not known of errors by code
    codes = permanent_codes(shown.visit.parts.pipelines.get(shown.job.pipeline))
    wanted_code = body.filter.code
    found = await job_details.errors(shown.job, shown.visit.parts)
    return sum(
        each.count
        for each in found.errors
        if each.code in codes and wanted_code in (None, each.code)
    )


async def _values(visit: Changing, name: str) -> list[str]:
    found = await values_of(visit.request, name)
    if not found:
        raise UserError("no status is chosen", "Choose at least one.")
    return found


def _operation(shown: Shown, kind: str, which: Wanted, form: dict[str, str]) -> NewOperationBody:
    items = which.items
    if items.is_empty and not which.values:
        raise UserError("the filter is empty", "Say which items are meant, e.g. status:ERROR.")
    if items.rulings:
        raise UserError(
            "operations do not filter by ruling", "Select the rows, or leave `ruling:` out."
        )
    statuses = list(items.statuses)
    if kind == "reprocess" and not statuses:
        statuses = [ItemStatus.ERROR] if items.code else sorted(FINAL)
    if kind == "skip" and not statuses:
        statuses = [ItemStatus.PENDING]
    filter = {
        "job_ids": [shown.job.id],
        "statuses": statuses,
        "code": items.code,
        "since": items.since,
        "until": items.until,
        "values": which.value_words,
    }
    told = {
        "kind": "skip" if kind == "skip" else "reprocess",
        "filter": formed(Filter, filter),
        "reset_attempts": "reset_attempts" in form,
        "include_permanent": "include_permanent" in form,
        "items_per_second": whole_number(form.get("items_per_second")),
        "reason": form.get("reason", "")[:1000],
    }
    return formed(NewOperationBody, told)


async def _ask(shown: Shown, template: str, **context: Any) -> Response:
    """As a dialog, or as a page of its own for browsers without scripts."""
    context = {"job": shown.shape, **context}
    if shown.visit.is_partial:
        return shown.visit.part(template, **context)
    return await shown.visit.page("ask.html", here="jobs", question=template, **context)


def _seqs(text: str) -> list[int]:
    words = [word for word in text.split(",") if word]
    if len(words) > _MOST_SEQS:
        raise UserError(f"more than {_MOST_SEQS:,} rows are chosen", "Use the filter instead.")
    if not all(word.isascii() and word.isdecimal() and len(word) < 16 for word in words):
        raise UserError("the chosen rows cannot be read", "Choose them again.")
    return [int(word) for word in words]
