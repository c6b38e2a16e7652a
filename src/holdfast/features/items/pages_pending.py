"""Pending items of all jobs; an admin can switch the page off."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Response

from holdfast.errors import UserError
from holdfast.features.items.filtering import parse_instant
from holdfast.features.items.pending_shapes import PendingRequest, pending_page
from holdfast.features.switches.flag_needed import require_flag
from holdfast.features.switches.flags import Flag
from holdfast.server.context import Visitor
from holdfast.server.forms import OperatorPost, fields, reason_in, whole_number

router = APIRouter(prefix="/pending", dependencies=[Depends(require_flag(Flag.PENDING))])

_PAGE_SIZE = 100
_OPEN = "PENDING,PROCESSING"
_MOST_CHOSEN = 2000
_DAY_CHARACTERS = len("2026-11-15")

Word = Annotated[str, Query(max_length=200)]


@dataclass(frozen=True, slots=True)
class PendingFilter:
    """What the page shows, as its address and its form contain it."""

    statuses: str
    of: str
    pipeline: str
    job: str
    since: str
    until: str

    def link(self, **changes: str) -> str:
        """Returns the address of the page with a part of the filter changed."""
        words = {name: word for name, word in asdict(replace(self, **changes)).items() if word}
        return f"/pending?{urlencode(words)}"

    @property
    def is_narrow(self) -> bool:
        return bool(self.pipeline or self.job or self.since or self.until)


@router.get("")
async def index(
    visit: Visitor,
    statuses: Annotated[str, Query(max_length=100)] = _OPEN,
    of: Literal["me", "all"] | None = None,
    pipeline: Word = "",
    job: Word = "",
    since: Word = "",
    until: Word = "",
    after: str | None = None,
) -> Response:
    owner = of or ("me" if visit.person.scope else "all")
    request = PendingRequest(
        statuses,
        owner,
        pipeline or None,
        whole_number(job.strip().removeprefix("#")),
        parse_instant(since) if since else None,
        _end_of(until) if until else None,
    )
    page = await pending_page(request, visit.person, visit.parts, _PAGE_SIZE, after)
    shown = {item.pipeline for item in page.items} | ({pipeline} if pipeline else set())
    context = {
        "items": page.items,
        "next": page.next,
        "count": page.pending_count,
        "filter": PendingFilter(statuses, owner, pipeline, job, since, until),
        "names": sorted(shown.union(visit.parts.pipelines)),  # other servers may have more
    }
    if after is not None:
        return visit.part("parts/all_pending_rows.html", **context)
    return await visit.page("pending.html", here="pending", **context)


def _end_of(text: str) -> datetime:
    """Returns the end of a time; a day is meant as a whole."""
    instant = parse_instant(text)
    return instant + timedelta(days=1) if len(text) == _DAY_CHARACTERS else instant


@router.get("/bulk")
async def skip_dialog(
    visit: Visitor, seqs: Annotated[str, Query(max_length=100_000)] = ""
) -> Response:
    chosen = _chosen(seqs)
    count = sum(map(len, chosen.values()))
    return await visit.dialog(
        "dialogs/skip_pending.html", here="pending", seqs=seqs, count=count, jobs=len(chosen)
    )


@router.post("/bulk")
async def skip(visit: OperatorPost) -> Response:
    form = await fields(visit.request)
    chosen = _chosen(form.get("seqs", ""))
    for job_id in chosen:  # checks all of them before any is changed
        await visit.parts.console.jobs.job(job_id, visit.person.scope)
    control, skipped = visit.parts.control(visit.person.name), 0
    for job_id, seqs in chosen.items():
        skipped += await control.skip_items(job_id, seqs, reason_in(form))
    unchanged = sum(map(len, chosen.values())) - skipped
    more = f" {unchanged:,} were finished or in progress and left unchanged." if unchanged else ""
    return visit.go("/pending", f"Skipped: {skipped:,}.{more}")


def _chosen(text: str) -> dict[int, list[int]]:
    """Returns the rows by job, out of "12-1,12-5,13-1"."""
    chosen = defaultdict[int, list[int]](list)
    pairs = list(filter(None, text.split(",")))
    if len(pairs) > _MOST_CHOSEN:
        raise UserError(f"more than {_MOST_CHOSEN:,} rows are selected", "Select fewer at a time.")
    for pair in pairs:
        job, _, row = pair.partition("-")
        job_id, seq = whole_number(job), whole_number(row)
        if job_id is None or seq is None:
            raise UserError(f"{pair[:50]!r} does not name a row", "Select rows on the page.")
        if seq not in chosen[job_id]:
            chosen[job_id].append(seq)
    if not chosen:
        raise UserError("no row is selected", "Select rows on the Pending page.")
    return chosen
