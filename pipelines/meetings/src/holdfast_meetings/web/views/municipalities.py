"""Municipalities: the list, a municipality with its documents, add and edit, backfills."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Response
from pydantic import ValidationError

from holdfast.errors import NotAllowed, UserError
from holdfast.server.context import Visit, Visitor
from holdfast.server.forms import AdminPost, OperatorPost, fields
from holdfast_meetings.options import DocumentType, Mode
from holdfast_meetings.web.api import documents as documents_api
from holdfast_meetings.web.api import municipalities as api
from holdfast_meetings.web.api.municipalities import BackfillOrder
from holdfast_meetings.web.api.shapes import (
    DecisionShape,
    MunicipalityChange,
    NewMunicipality,
    Subdomain,
    Words,
    find_municipality,
    reads_of,
    streams_of,
)
from holdfast_meetings.web.api.streams import shape_of
from holdfast_meetings.web.views.wording import WORDS

router = APIRouter(prefix="/meetings")

_PAGE_SIZE = 100
_LIVE = ("RUNNING", "QUEUED")


@router.get("")
async def index(
    visit: Visitor,
    words: Words = "",
    state: Annotated[str, Query(max_length=200)] = "",
    after: str | None = None,
) -> Response:
    page = await api.index(visit.person, visit.parts, words, state or None, _PAGE_SIZE, after)
    context = {"next": page.next, "words": words, "state": state}
    states = await reads_of(visit.parts).states()
    return await visit.page(
        "meetings/municipalities.html",
        here="meetings",
        municipalities=page.municipalities,
        states=states,
        **context,
    )


@router.get("/new")
async def ask_new(visit: Visitor) -> Response:
    if not visit.person.is_admin:
        raise NotAllowed("only an admin can add a municipality", "Ask an admin.")
    return await visit.page("meetings/edit.html", here="meetings", municipality=None)


@router.post("/new")
async def add(visit: AdminPost) -> Response:
    form = await fields(visit.request)
    try:
        body = NewMunicipality(**_given(form), subdomain=form.get("subdomain", "").strip())
    except ValidationError as error:
        raise UserError(f"{error.errors()[0]['loc'][0]} is too long") from error
    municipality = await api.add(body, visit.person, visit.parts)
    if "start" not in form:
        return visit.go(path_of(municipality.subdomain), f"{municipality.name} is registered.")
    ordered = await api.order(municipality.subdomain, BackfillOrder(), visit.person, visit.parts)
    message = f"{municipality.name}: {summary_of(ordered.decisions)}."
    return visit.go(path_of(municipality.subdomain), message)


@router.get("/municipalities/{subdomain}")
async def show(
    subdomain: Subdomain,
    visit: Visitor,
    type: Annotated[str, Query(max_length=20)] = "",
    meeting: documents_api.Body = "",
    since: Annotated[str, Query(max_length=20)] = "",
    until: Annotated[str, Query(max_length=20)] = "",
    after: str | None = None,
) -> Response:
    """Shows a municipality; an empty field of the filter filters nothing."""
    person, parts = visit.person, visit.parts
    municipality = await find_municipality(subdomain, parts)
    kind = DocumentType(type) if type in set(DocumentType) else None
    page = await documents_api.documents(
        subdomain, person, parts, kind, meeting, _day(since), _day(until), _PAGE_SIZE, after
    )
    wanted = {"type": kind or "", "meeting": meeting, "since": since, "until": until}
    return await visit.page(
        "meetings/municipality.html",
        here="meetings",
        documents=page.documents,
        next=page.next,
        bodies=await reads_of(parts).bodies(municipality.id),
        types=DocumentType,
        wanted=wanted,
        **await _standing(subdomain, visit),
        **WORDS,
    )


@router.get("/municipalities/{subdomain}/standing")
async def standing(subdomain: Subdomain, visit: Visitor) -> Response:
    """Shows the state of its backfill, which the page refreshes while one is running."""
    return visit.part("meetings/standing.html", **await _standing(subdomain, visit))


@router.get("/municipalities/{subdomain}/edit")
async def ask_change(subdomain: Subdomain, visit: Visitor) -> Response:
    if not visit.person.is_admin:
        raise NotAllowed("only an admin can edit a municipality", "Ask an admin.")
    municipality = await api.show(subdomain, visit.person, visit.parts)
    return await visit.page("meetings/edit.html", here="meetings", municipality=municipality)


@router.post("/municipalities/{subdomain}/edit")
async def change(subdomain: Subdomain, visit: AdminPost) -> Response:
    try:
        body = MunicipalityChange(**_given(await fields(visit.request)))
    except ValidationError as error:
        raise UserError(f"{error.errors()[0]['loc'][0]} is too long") from error
    before = await api.show(subdomain, visit.person, visit.parts)
    changed = await api.change(subdomain, body, visit.person, visit.parts)
    moved = changed.url != before.url and before.backfill.state != "NOT_STARTED"
    note = " The site moved: the next backfill reads everything again." if moved else ""
    return visit.go(path_of(subdomain), f"{changed.name} was saved.{note}")


@router.get("/municipalities/{subdomain}/force")
async def ask_force(subdomain: Subdomain, visit: Visitor) -> Response:
    """Shows what a forced backfill would do."""
    if not visit.person.may_change:
        raise NotAllowed(f"{visit.person.name} has read-only access", "Ask an admin.")
    municipality = await api.show(subdomain, visit.person, visit.parts)
    dry = BackfillOrder(force=True, dry_run=True)
    ordered = await api.order(subdomain, dry, visit.person, visit.parts)
    context: dict[str, Any] = {"municipality": municipality, "decisions": ordered.decisions}
    if visit.is_partial:
        return visit.part("meetings/ask_force.html", **context)
    context |= {
        "title": municipality.name,
        "question": "meetings/ask_force.html",
        "back": path_of(subdomain),
    }
    return await visit.page("meetings/ask.html", here="meetings", **context)


@router.post("/municipalities/{subdomain}/backfill")
async def backfill(subdomain: Subdomain, visit: OperatorPost) -> Response:
    form = await fields(visit.request)
    mode = Mode(form["mode"]) if form.get("mode") in set(Mode) else None
    types = [kind for kind in DocumentType if form.get("type") in (None, "", kind)]
    if not types:
        raise UserError("there is no such type of document", f"Types: {', '.join(DocumentType)}.")
    body = BackfillOrder(mode=mode, force="force" in form, types=types)
    municipality = await find_municipality(subdomain, visit.parts)
    ordered = await api.order(subdomain, body, visit.person, visit.parts)
    return visit.go(path_of(subdomain), f"{municipality.name}: {summary_of(ordered.decisions)}.")


async def _standing(subdomain: str, visit: Visit) -> dict[str, Any]:
    municipality = await api.show(subdomain, visit.person, visit.parts)
    rows = (await streams_of(visit.parts).of_municipalities([subdomain]))[subdomain]
    streams = [shape_of(row) for row in rows]
    live = any(stream.job_state in _LIVE for stream in streams)
    scope = visit.person.scope
    mine = [stream for stream in streams if scope is None or stream.owner_id == scope]
    failed = [stream for stream in mine if stream.job_state == "FAILED"]
    waiting = [stream for stream in mine if stream.error and stream.job_state in _LIVE]
    return {
        "municipality": municipality,
        "streams": mine,
        "live": live,
        "failed": failed,
        "waiting": waiting,
        "may_order": visit.person.may_change and len(mine) == len(streams),
    }


def _given(form: dict[str, str]) -> dict[str, str]:
    return {name: form.get(name, "").strip() for name in MunicipalityChange.model_fields}


def _day(text: str) -> date | None:
    if not text:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UserError(f"{text!r} is not a date", "Write it as in 2026-01-31.") from None


def path_of(subdomain: str) -> str:
    return f"/meetings/municipalities/{quote(subdomain, safe='')}"


def summary_of(decisions: list[DecisionShape]) -> str:
    """Summarizes decisions as `agenda: start full; minutes: resume`."""
    return "; ".join(f"{item.document_type}: {item.action} ({item.why})" for item in decisions)
