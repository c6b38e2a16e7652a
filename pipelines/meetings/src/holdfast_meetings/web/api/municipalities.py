"""Municipalities, which every user can read and an admin can edit, and their backfills."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import Field

from holdfast.errors import NotAllowed
from holdfast.model import Json
from holdfast.server.cursors import Cursors
from holdfast.server.dependencies import Parts
from holdfast.server.idempotency import IdempotentRoute, RequestKey, request_key
from holdfast.server.identity import Admin, Operator, PartsOf, Person, Someone, parts_of
from holdfast.server.shapes import Shape
from holdfast_meetings.backfills import OtherRows, backfill_of
from holdfast_meetings.municipalities import Municipality
from holdfast_meetings.options import DocumentType, Mode
from holdfast_meetings.web.api.shapes import (
    After,
    BackfillShape,
    Decisions,
    DecisionShape,
    MunicipalityChange,
    MunicipalityList,
    MunicipalityShape,
    NewMunicipality,
    PageSize,
    Subdomain,
    Words,
    find_municipality,
    pipeline_of,
    reads_of,
    streams_of,
)


class _MunicipalityRoute(IdempotentRoute):
    """A route of municipalities; only a backfill creates something: jobs."""

    async def describe(self, request: Request, person: Person, made: int) -> str:
        given = (await parts_of(request).store.reads.job(made)).options
        decision = DecisionShape(
            subdomain=given["subdomain"],
            document_type=given["document_type"],
            action=f"job {made}",
            why="the first response was lost",
        )
        return Decisions(decisions=[decision]).model_dump_json(by_alias=True)


router = APIRouter(
    prefix="/api/meetings/municipalities", tags=["meetings"], route_class=_MunicipalityRoute
)

_SHOWN = [name for name in MunicipalityShape.model_fields if name != "backfill"]


class BackfillOrder(Shape):
    mode: Mode | None = Field(
        default=None, description="Default: full the first time, then the months around today."
    )
    force: bool = Field(default=False, description="Read everything again from the beginning.")
    types: list[DocumentType] = Field(default_factory=lambda: list(DocumentType), min_length=1)
    dry_run: bool = Field(default=False, description="Show what would be done without doing it.")


@router.get("", summary="List the municipalities")
async def index(
    person: Someone,
    parts: PartsOf,
    words: Words = "",
    state: Annotated[str | None, Query(max_length=200)] = None,
    page_size: PageSize = 100,
    after: After = None,
) -> MunicipalityList:
    """Returns those whose name or subdomain contains the words."""
    bound = {"words": words, "state": state}
    cursors = Cursors(parts.secret, "municipalities", person.name, bound)
    start = cursors.read(after) or ""
    rows = await reads_of(parts).municipalities(start, page_size + 1, words=words, state=state)
    shown = rows[:page_size]
    shapes = await _shapes(shown, parts)
    more = cursors.write(shown[-1].subdomain) if len(rows) > page_size else None
    return MunicipalityList(municipalities=shapes, next=more)


@router.post("", status_code=201, summary="Register a municipality")
async def add(body: NewMunicipality, person: Admin, parts: PartsOf) -> MunicipalityShape:
    """A backfill fetches its pages, or a report of its webhook does."""
    given = body.model_dump(exclude_unset=True)
    control = parts.control(person.name)
    municipality = (await control.request(pipeline_of(parts), {"add": given})).answer
    return await show(municipality.subdomain, person, parts)


@router.get("/{subdomain}", summary="Show a municipality")
async def show(subdomain: Subdomain, person: Someone, parts: PartsOf) -> MunicipalityShape:
    municipality = await find_municipality(subdomain, parts)
    return (await _shapes([municipality], parts))[0]


@router.patch("/{subdomain}", summary="Edit a municipality")
async def change(
    subdomain: Subdomain, body: MunicipalityChange, person: Admin, parts: PartsOf
) -> MunicipalityShape:
    """If the URL changes, the next backfill reads everything again."""
    await find_municipality(subdomain, parts)
    given = body.model_dump(exclude_unset=True) | {"subdomain": subdomain}
    await parts.control(person.name).request(pipeline_of(parts), {"change": given})
    return await show(subdomain, person, parts)


@router.post("/{subdomain}/backfill", summary="Backfill a municipality")
async def backfill(
    request: Request, subdomain: Subdomain, body: BackfillOrder, person: Operator, parts: PartsOf
) -> Decisions:
    """Fetches what is missing, from the last checkpoint; if a job is running, after it."""
    await find_municipality(subdomain, parts)
    return await order(subdomain, body, person, parts, request_key(request))


async def order(
    subdomain: str,
    body: BackfillOrder,
    person: Person,
    parts: Parts,
    key: RequestKey | None = None,
) -> Decisions:
    await _check_owner(subdomain, person, parts)
    request = {"backfill": subdomain, **body.model_dump()}
    control, quota = parts.control(person.name), parts.console.quotas.of_jobs
    planned = await control.request(pipeline_of(parts), request, key=key, quota=quota)
    return Decisions(decisions=[DecisionShape(**decision) for decision in planned.answer])


async def _check_owner(subdomain: str, person: Person, parts: Parts) -> None:
    """Refuses streams of others.

    A backfill takes over the streams of the municipality, so they must be the person's own."""
    if person.scope is None:
        return
    streams = (await streams_of(parts).of_municipalities([subdomain]))[subdomain]
    if any(stream["owner_id"] != person.scope for stream in streams):
        raise NotAllowed(f"the streams of {subdomain} belong to another owner", "Ask an admin.")


async def _shapes(municipalities: Sequence[Municipality], parts: Parts) -> list[MunicipalityShape]:
    streams = await streams_of(parts).of_municipalities([each.subdomain for each in municipalities])
    other = await reads_of(parts).other_rows([each.id for each in municipalities])
    return [
        _shape(each, streams[each.subdomain], other.get(each.id, OtherRows()))
        for each in municipalities
    ]


def _shape(municipality: Municipality, streams: list[Json], other: OtherRows) -> MunicipalityShape:
    fields: dict[str, Any] = {name: getattr(municipality, name) for name in _SHOWN}
    backfill = BackfillShape.model_validate(backfill_of(streams, other, municipality.pages))
    return MunicipalityShape(**fields, backfill=backfill)
