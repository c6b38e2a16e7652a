"""Requests about municipalities: who asks for what, and the orders that it leads to.

Every way in (webhook, schedule, command, page) makes one of these requests; they are decided one
at a time, in a transaction with what they write, so that two webhooks at once make one chain.

{"add": {...}}                                   register a municipality
{"change": {...}}                                change what is known of one
{"webhook": {...}}                               the site says that it changed
{"backfill": subdomain, "mode", "force", "types", "dry_run"}
{"follow": source}                               a job of the source ended
{"force_full": source}                           somebody wants it walked anew
{} or {"subdomain": ...}                         a schedule: all municipalities, or one
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from holdfast.errors import UserError
from holdfast.model import Json, Standing
from holdfast.pipeline import Act, Mark, Order, Planned, Resume, Standings, Start, Tx
from holdfast.pipelines.meetings.deciding import Action, Decision, decide
from holdfast.pipelines.meetings.municipalities import (
    FIELDS,
    Municipality,
    checked,
    write_municipality,
)
from holdfast.pipelines.meetings.options import (
    DocumentType,
    MeetingsOptions,
    Mode,
    source_of,
    split_source,
)
from holdfast.pipelines.meetings.reads import MeetingsReads
from holdfast.pipelines.meetings.walking import window_of

_CHANGES = ("pages", "last_updated")
_PROOF_AGE = timedelta(days=7)  # an incremental pass takes an inventory where the last is older


class Planner:
    def __init__(
        self, tx: Tx, standings: Standings, now: datetime, options: MeetingsOptions
    ) -> None:
        self._tx = tx
        self._reads = MeetingsReads(tx.fetch)
        self._standings = standings
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
                f"{given['subdomain']} is there already",
                f"Start it with: holdfast meetings backfill {given['subdomain']}. Its page in the "
                "browser has Edit.",
            )
        added = await self._write(None, given)
        return Planned(answer=added, acts=_acts(None, added))

    async def _change(self, given: Mapping[str, Any]) -> Planned:
        """Where a site moved, the next backfill walks all of it: a checkpoint at the old address
        says nothing about the new one."""
        known = await self._known(given["subdomain"])
        changed = await self._write(known, given)
        sources = [source_of(known.subdomain, kind) for kind in DocumentType]
        moved = await self._standings(sources) if changed.url != known.url else ()
        marks = [Mark(one.stream_id, force_full=True) for one in moved if one.mode == Mode.FULL]
        return Planned(marks, changed, _acts(known, changed))

    async def _webhook(self, given: Mapping[str, Any]) -> Planned:
        """Work starts when the municipality is new or says that it changed. The count alone
        would miss pages that were read anew."""
        known = await self._reads.municipality(given["subdomain"])
        told = {name: given[name] for name in FIELDS if name in given}
        municipality = await self._write(known, told)
        changed = known is None or any(
            getattr(known, name) != getattr(municipality, name) for name in _CHANGES
        )
        decisions = await self._decide([municipality], DocumentType) if changed else []
        answer = {
            "action": "created" if known is None else "updated",
            "decisions": [_shown(*each) for each in decisions],
        }
        return Planned(self._orders(decisions, told=True), answer, _acts(known, municipality))

    async def _write(self, known: Municipality | None, given: Mapping[str, Any]) -> Municipality:
        return await write_municipality(self._tx, known, checked(given, known, self._options))

    async def _known(self, subdomain: str) -> Municipality:
        found = await self._reads.municipality(subdomain)
        if found is None:
            raise UserError(
                f"there is no municipality {subdomain!r}",
                f"Add it with: holdfast meetings add {subdomain}",
            )
        return found

    # Decisions.

    async def _backfill(self, request: Json) -> Planned:
        municipality = await self._known(request["backfill"])
        wanted = Mode(request["mode"]) if request.get("mode") in tuple(Mode) else None
        types = [DocumentType(one) for one in request.get("types") or DocumentType]
        force = bool(request.get("force"))
        decisions = await self._decide([municipality], types, wanted, force)
        orders = [] if request.get("dry_run") else self._orders(decisions)
        return Planned(orders, [_shown(*each) for each in decisions])

    async def _force_full(self, source: str) -> Planned:
        subdomain, document_type = split_source(source)
        return await self._backfill(
            {"backfill": subdomain, "types": [document_type], "mode": Mode.FULL, "force": True}
        )

    async def _follow(self, source: str) -> Planned:
        """What was asked for while the job ran."""
        standings = await self._standings([source])
        if not any(one.force_full or one.rerun_requested for one in standings):
            return Planned()
        subdomain, document_type = split_source(source)
        municipality = await self._reads.municipality(subdomain)
        if municipality is None:
            return Planned()
        decided = decide(standings, None, False)
        return Planned(self._orders([(municipality, document_type, decided)], told=True))

    async def _schedule(self, request: Json) -> Planned:
        if request.get("subdomain"):
            municipalities = [await self._known(request["subdomain"])]
        else:
            municipalities = await self._reads.all_municipalities()
        decisions = await self._decide(municipalities, DocumentType)
        return Planned(self._orders(decisions), [_shown(*each) for each in decisions])

    async def _decide(
        self,
        municipalities: Sequence[Municipality],
        types: Sequence[DocumentType] | type[DocumentType],
        wanted: Mode | None = None,
        force: bool = False,
    ) -> list[tuple[Municipality, DocumentType, Decision]]:
        asked = [(one, kind) for one in municipalities for kind in types]
        standings = await self._stand([source_of(one.subdomain, kind) for one, kind in asked])
        return [
            (one, kind, decide(standings.get(source_of(one.subdomain, kind), ()), wanted, force))
            for one, kind in asked
        ]

    async def _stand(self, sources: Sequence[str]) -> dict[str, list[Standing]]:
        """Read without a lock first: only a live job can end before the plan is committed, and
        most are not."""
        found = _by_source(await self._standings(None if len(sources) > 2 else sources))
        live = [source for source in sources if any(one.live for one in found.get(source, ()))]
        if len(sources) > 2 and live:
            found |= _by_source(await self._standings(live))
        return found

    def _orders(
        self,
        decisions: Sequence[tuple[Municipality, DocumentType, Decision]],
        *,
        told: bool = False,
    ) -> list[Order]:
        """`told` where the site, or somebody, may have said that something changed."""
        return [order for each in decisions for order in self._orders_of(*each, told)]

    def _orders_of(
        self,
        municipality: Municipality,
        document_type: DocumentType,
        decision: Decision,
        told: bool,
    ) -> list[Order]:
        if decision.standing is None:
            return [self._start(municipality, document_type, decision, told)]
        stream_id = decision.standing.stream_id
        orders: list[Order] = []
        if decision.action is Action.RESUME:
            orders.append(Resume(decision.standing.job_id))
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
        told: bool,
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
                "told": told,
            },
        )

    def _is_overdue(self, proven_at: datetime | None) -> bool:
        return proven_at is None or self._now - proven_at > _PROOF_AGE


def local_day(now: datetime, zone: str) -> date:
    return now.astimezone(ZoneInfo(zone)).date()


def _acts(known: Municipality | None, written: Municipality) -> list[Act]:
    """For the audit: what was added, or what each changed field was and is."""
    if known is None:
        return [Act("municipality.added", written.subdomain, {"url": written.url})]
    fields = [name for name in FIELDS if getattr(known, name) != getattr(written, name)]
    detail = {name: [getattr(known, name), getattr(written, name)] for name in fields}
    return [Act("municipality.changed", written.subdomain, detail)] if detail else []


def _by_source(standings: Sequence[Standing]) -> dict[str, list[Standing]]:
    found: dict[str, list[Standing]] = {}
    for standing in standings:
        found.setdefault(standing.source, []).append(standing)
    return found


def _shown(municipality: Municipality, document_type: DocumentType, decision: Decision) -> Json:
    return {
        "subdomain": municipality.subdomain,
        "document_type": document_type,
        "action": decision.action,
        "why": decision.why,
    }
