"""Requests about municipalities, and the orders they lead to.

Webhooks, schedules, commands and pages all make one of these requests. They are decided one at a
time, in a transaction with what they write, so that two webhooks at once start only one job.

{"add": {...}}                                   register a municipality
{"change": {...}}                                edit one
{"webhook": {...}}                               the site reports a change
{"backfill": subdomain, "mode", "force", "types", "dry_run"}
{"follow": source}                               a job of this source ended
{"force_full": source}                           read everything of it again
{} or {"subdomain": ...}                         a schedule: all municipalities, or one
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from holdfast.errors import UserError
from holdfast.model import Json, StreamStatus
from holdfast.orders import Act, Mark, Order, Planned, Resume, Start
from holdfast.pipeline import StreamStatuses, Tx
from holdfast_meetings.deciding import Action, Decision, decide
from holdfast_meetings.municipalities import (
    FIELDS,
    Municipality,
    checked,
    write_municipality,
)
from holdfast_meetings.options import (
    DocumentType,
    MeetingsOptions,
    Mode,
    source_of,
    split_source,
)
from holdfast_meetings.reads import MeetingsReads
from holdfast_meetings.walking import window_of

_CHANGES = ("pages", "last_updated")
_PROOF_AGE = timedelta(days=7)  # if the last inventory is older, an incremental pass takes one


class Planner:
    def __init__(
        self, tx: Tx, streams: StreamStatuses, now: datetime, options: MeetingsOptions
    ) -> None:
        self._tx = tx
        self._reads = MeetingsReads(tx.fetch)
        self._streams = streams
        self._now = now
        self._options = options

    async def plan(self, request: Json) -> Planned:
        if "add" in request:
            return await self._add(request["add"])
        if "change" in request:
            return await self._change(request["change"])
        if "webhook" in request:
            return await self._webhook(request["webhook"])
        if "backfill" in request:
            return await self._backfill(request)
        if "follow" in request:
            return await self._follow(request["follow"])
        if "force_full" in request:
            return await self._force_full(request["force_full"])
        return await self._schedule(request)

    # Municipalities.

    async def _add(self, given: Mapping[str, Any]) -> Planned:
        if await self._reads.municipality(given["subdomain"]) is not None:
            raise UserError(
                f"{given['subdomain']} already exists",
                f"Start it with: holdfast meetings backfill {given['subdomain']}. To change it, "
                "open its page in the browser and press Edit.",
            )
        added = await self._write(None, given)
        return Planned(answer=added, acts=_acts(None, added))

    async def _change(self, given: Mapping[str, Any]) -> Planned:
        """Changes a municipality.

        If the site moved, the next backfill reads all of it: a checkpoint at the old address says
        nothing about the new one."""
        known = await self._known(given["subdomain"])
        changed = await self._write(known, given)
        sources = [source_of(known.subdomain, kind) for kind in DocumentType]
        moved = await self._streams(sources) if changed.url != known.url else ()
        full = [stream for stream in moved if stream.mode == Mode.FULL]
        marks = [Mark(stream.stream_id, force_full=True) for stream in full]
        return Planned(marks, changed, _acts(known, changed))

    async def _webhook(self, given: Mapping[str, Any]) -> Planned:
        """Handles a report of a site.

        Work starts if the municipality is new or reports a change. Its count alone would miss pages
        that were scanned again."""
        known = await self._reads.municipality(given["subdomain"])
        fields = {name: given[name] for name in FIELDS if name in given}
        municipality = await self._write(known, fields)
        changed = known is None or any(
            getattr(known, name) != getattr(municipality, name) for name in _CHANGES
        )
        decisions = await self._decide([municipality], DocumentType) if changed else []
        answer = {
            "action": "created" if known is None else "updated",
            "decisions": [_shown(*decision) for decision in decisions],
        }
        return Planned(self._orders(decisions, reported=True), answer, _acts(known, municipality))

    async def _write(self, known: Municipality | None, given: Mapping[str, Any]) -> Municipality:
        return await write_municipality(self._tx, known, checked(given, known, self._options))

    async def _known(self, subdomain: str) -> Municipality:
        municipality = await self._reads.municipality(subdomain)
        if municipality is None:
            raise UserError(
                f"there is no municipality {subdomain!r}",
                f"Add it with: holdfast meetings add {subdomain}",
            )
        return municipality

    # Decisions.

    async def _backfill(self, request: Json) -> Planned:
        municipality = await self._known(request["backfill"])
        wanted = Mode(request["mode"]) if request.get("mode") in tuple(Mode) else None
        types = [DocumentType(name) for name in request.get("types") or DocumentType]
        force = bool(request.get("force"))
        decisions = await self._decide([municipality], types, wanted, force)
        orders = [] if request.get("dry_run") else self._orders(decisions)
        return Planned(orders, [_shown(*decision) for decision in decisions])

    async def _force_full(self, source: str) -> Planned:
        subdomain, document_type = split_source(source)
        return await self._backfill(
            {"backfill": subdomain, "types": [document_type], "mode": Mode.FULL, "force": True}
        )

    async def _follow(self, source: str) -> Planned:
        """Orders what was requested while the job was running."""
        streams = await self._streams([source])
        if not any(stream.force_full or stream.rerun_requested for stream in streams):
            return Planned()
        subdomain, document_type = split_source(source)
        municipality = await self._reads.municipality(subdomain)
        if municipality is None:
            return Planned()
        decision = decide(streams, None, False)
        return Planned(self._orders([(municipality, document_type, decision)], reported=True))

    async def _schedule(self, request: Json) -> Planned:
        if request.get("subdomain"):
            municipalities = [await self._known(request["subdomain"])]
        else:
            municipalities = await self._reads.all_municipalities()
        decisions = await self._decide(municipalities, DocumentType)
        return Planned(self._orders(decisions), [_shown(*decision) for decision in decisions])

    async def _decide(
        self,
        municipalities: Sequence[Municipality],
        types: Sequence[DocumentType] | type[DocumentType],
        wanted: Mode | None = None,
        force: bool = False,
    ) -> list[tuple[Municipality, DocumentType, Decision]]:
        collections = {
            source_of(municipality.subdomain, document_type): (municipality, document_type)
            for municipality in municipalities
            for document_type in types
        }
        streams = await self._streams_of(list(collections))
        return [
            (*collection, decide(streams.get(source, ()), wanted, force))
            for source, collection in collections.items()
        ]

    async def _streams_of(self, sources: Sequence[str]) -> dict[str, list[StreamStatus]]:
        """Returns the streams by source.

        Many are read without a lock first: only a live job can end before the plan is committed,
        and most are not live."""
        many = len(sources) > 2
        streams = _by_source(await self._streams(None if many else sources))
        live = [
            source for source in sources if any(stream.live for stream in streams.get(source, ()))
        ]
        if many and live:
            streams |= _by_source(await self._streams(live))
        return streams

    def _orders(
        self,
        decisions: Sequence[tuple[Municipality, DocumentType, Decision]],
        *,
        reported: bool = False,
    ) -> list[Order]:
        """Returns the orders; `reported`: the site or a person may have reported a change."""
        return [order for decision in decisions for order in self._orders_of(*decision, reported)]

    def _orders_of(
        self,
        municipality: Municipality,
        document_type: DocumentType,
        decision: Decision,
        reported: bool,
    ) -> list[Order]:
        if decision.stream is None:
            return [self._start(municipality, document_type, decision, reported)]
        stream_id = decision.stream.stream_id
        orders: list[Order] = []
        if decision.action is Action.RESUME:
            orders.append(Resume(decision.stream.job_id))
        force_full = decision.action is Action.MARK_FULL
        rerun = decision.action is Action.MARK_RERUN or decision.rerun
        if force_full or rerun:
            orders.append(Mark(stream_id, force_full=force_full, rerun=rerun))
        return orders

    def _start(
        self,
        municipality: Municipality,
        document_type: DocumentType,
        decision: Decision,
        reported: bool,
    ) -> Start:
        mode = Mode.FULL if decision.action is Action.START_FULL else Mode.INCREMENTAL
        today = local_day(self._now, municipality.zone)
        return Start(
            source_of(municipality.subdomain, document_type),
            mode,
            f"{municipality.subdomain} {document_type} {mode}",
            {
                "municipality_id": municipality.id,
                "subdomain": municipality.subdomain,
                "document_type": document_type,
                "url": municipality.url,
                "mode": mode,
                "window": window_of(today, self._options.months),
                "complete": decision.complete,
                "inventory": self._is_overdue(decision.proven_at),
                "reported": reported,
            },
        )

    def _is_overdue(self, proven_at: datetime | None) -> bool:
        return proven_at is None or self._now - proven_at > _PROOF_AGE


def local_day(now: datetime, zone: str) -> date:
    return now.astimezone(ZoneInfo(zone)).date()


def _acts(known: Municipality | None, written: Municipality) -> list[Act]:
    """Returns entries for the audit log: what was added, or the old and new value of each changed
    field."""
    if known is None:
        return [Act("municipality.added", written.subdomain, {"url": written.url})]
    fields = [name for name in FIELDS if getattr(known, name) != getattr(written, name)]
    detail = {name: [getattr(known, name), getattr(written, name)] for name in fields}
    return [Act("municipality.changed", written.subdomain, detail)] if detail else []


def _by_source(streams: Sequence[StreamStatus]) -> dict[str, list[StreamStatus]]:
    by_source: dict[str, list[StreamStatus]] = {}
    for stream in streams:
        by_source.setdefault(stream.source, []).append(stream)
    return by_source


def _shown(municipality: Municipality, document_type: DocumentType, decision: Decision) -> Json:
    return {
        "subdomain": municipality.subdomain,
        "document_type": document_type,
        "action": decision.action,
        "why": decision.why,
    }
