"""Describes a run: which sources are read, how, and within which limits.

It is checked before anything starts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import orjson

from holdfast.errors import UserError
from holdfast.model import Gate, Json, Lane
from holdfast_regulations.dates import DateRange
from holdfast_regulations.options import (
    MODES,
    RECHECK,
    SENTINEL_MODE,
    RegulationsOptions,
)
from holdfast_regulations.sources import Source


@dataclass(frozen=True, slots=True)
class Run:
    """A run; `mode` is None if each source is read in its own."""

    sources: tuple[Source, ...]
    mode: str | None
    lane: Lane
    wanted: DateRange
    max_urls: int
    max_urls_per_source: int | None  # None: as each source says
    concurrency: int
    delay_ms: int = 0
    recheck_days: int = 0
    restart: bool = False
    run_by: str = ""

    def cap_of(self, source: Source) -> int:
        return min(self.max_urls, self.max_urls_per_source or source.caps.max_urls)

    @property
    def stream_mode(self) -> str:
        """The mode of the run's streams: the daily pass has its own, so that it waits for no
        backfill."""
        if self.lane is Lane.SENTINEL:
            return f"{SENTINEL_MODE} {self.mode}" if self.mode == RECHECK else SENTINEL_MODE
        return self.mode or self.sources[0].mode

    @property
    def name(self) -> str:
        names = ", ".join(source.slug for source in self.sources[:3])
        more = f" and {len(self.sources) - 3} more" if len(self.sources) > 3 else ""
        return f"{names}{more}, {self.stream_mode}"

    @property
    def options(self) -> Json:
        """The run as the job stores and shows it.

        The sources themselves are stored with it, so that every worker reads the same, whichever
        sources file it has."""
        shown = {
            "sources": ",".join(source.slug for source in self.sources),
            "mode": self.mode,
            "lane": self.lane.value,
            "date_from": self.wanted.first and str(self.wanted.first),
            "date_to": self.wanted.last and str(self.wanted.last),
            "max_urls": self.max_urls,
            "max_urls_per_source": self.max_urls_per_source,
            "concurrency": self.concurrency,
            "delay_ms": self.delay_ms or None,
            "recheck_days": self.recheck_days or None,
            "restart": self.restart or None,
            "run_by": self.run_by or None,
            "dry_run": False,
            "definitions": {source.slug: definition_of(source) for source in self.sources},
        }
        return {name: value for name, value in shown.items() if value is not None}

    def by_mode(self) -> list[Run]:
        """Returns one run for each mode: a job has one."""
        if self.mode is not None or self.lane is Lane.SENTINEL:
            return [self]
        modes = dict.fromkeys(source.mode for source in self.sources)
        return [
            _with_sources(self, [source for source in self.sources if source.mode == mode], mode)
            for mode in modes
        ]


def _with_sources(run: Run, sources: Sequence[Source], mode: str) -> Run:
    return replace(run, sources=tuple(sources), mode=str(mode))


def run_of(
    request: Mapping[str, Any], sources: Mapping[str, Source], options: RegulationsOptions
) -> Run:
    """Returns the run that a request asks for; raises what is wrong with it."""
    chosen = chosen_sources(request.get("sources"), sources)
    mode = request.get("mode") or None
    if mode is not None and mode not in MODES:
        raise UserError(f"there is no mode {mode!r}", f"Modes: {', '.join(MODES)}.")
    if mode in MODES and mode != RECHECK:
        _require_mode(chosen, mode)
    per_run = _count(request, "max_urls") or options.run_cap
    return Run(
        sources=chosen,
        mode=mode,
        lane=Lane(request.get("lane") or Lane.BACKFILL),
        wanted=DateRange(_day(request, "date_from"), _day(request, "date_to")),
        max_urls=per_run,
        max_urls_per_source=_count(request, "max_urls_per_source") or options.max_urls_per_source,
        concurrency=_count(request, "concurrency") or options.concurrency,
        delay_ms=_count(request, "delay_ms") or 0,
        recheck_days=_recheck_days(request, mode, options),
        restart=bool(request.get("restart")),
        run_by=str(request.get("run_by") or ""),
    )


def chosen_sources(given: Any, sources: Mapping[str, Source]) -> tuple[Source, ...]:
    """Returns the sources that are given by slug or by host; all if none is given."""
    names = given.split(",") if isinstance(given, str) else list(given or ())
    names = [name.strip() for name in names if name.strip()]
    if not names:
        return tuple(sources.values())
    chosen: dict[str, Source] = {}
    for name in names:
        matching = [
            source for source in sources.values() if name == source.slug or name in source.hosts
        ]
        if not matching:
            raise UserError(f"there is no source {name!r}", f"Sources: {', '.join(sources)}.")
        chosen |= {source.slug: source for source in matching}
    return tuple(chosen.values())


def _require_mode(sources: Iterable[Source], mode: str) -> None:
    for source in sources:
        if mode not in source.modes:
            raise UserError(
                f"the source {source.slug} cannot be read by {mode}",
                f"It has: {', '.join(source.modes)}.",
            )


def _recheck_days(request: Mapping[str, Any], mode: str | None, options: RegulationsOptions) -> int:
    days = _count(request, "recheck_days")
    if days and mode != RECHECK:
        raise UserError("recheck_days is for the mode recheck only", "Choose the mode recheck.")
    return (days or options.aging_days) if mode == RECHECK else 0


def _count(request: Mapping[str, Any], name: str) -> int | None:
    value = request.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UserError(f"{name} is {value!r}", "Give a whole number above 0.")
    return value


def _day(request: Mapping[str, Any], name: str) -> date | None:
    value = request.get(name)
    if not value:
        return None
    try:
        return date.fromisoformat(str(value))
    except ValueError:
        which = "first" if name == "date_from" else "last"
        raise UserError(
            f"the {which} day of the range is {value!r}, which is not a day",
            "Write it as 2026-01-31.",
        ) from None


# Sources, as a job stores them.


def stored_source(source: Source) -> Json:
    stored: Json = source.model_dump(mode="json", exclude_defaults=True)
    return stored


def definition_of(source: Source) -> str:
    """Returns a text that changes with anything that decides which URLs a source has; not with its
    note or date."""
    stored = source.model_dump(mode="json", exclude_defaults=True, exclude={"note", "verified"})
    text = orjson.dumps(stored, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(text).hexdigest()[:16]


def query_of(source: str, options: Mapping[str, Any]) -> str:
    """Identifies the query in which a cursor is a position."""
    parts = {
        "source": source,
        "mode": options.get("mode"),
        "lane": options.get("lane"),
        "dates": [options.get("date_from"), options.get("date_to")],
        "definition": (options.get("definitions") or {}).get(source),
    }
    text = orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(text).hexdigest()[:32]


# Gates.


def gates_of(sources: Iterable[Source], delay_ms: int = 0) -> list[Gate]:
    """Returns one gate for each host. If sources share a host, the slowest of them decides."""
    gates: dict[str, Gate] = {}
    for source in sources:
        table = source.gate
        spacing = max(table.min_delay_seconds, delay_ms / 1000)
        jitter = max(0.0, table.max_delay_seconds - spacing)
        for host in source.hosts:
            other = gates.get(host)
            gate = Gate(host, spacing, jitter, table.concurrency)
            gates[host] = gate if other is None else _slower(gate, other)
    return list(gates.values())


def _slower(first: Gate, second: Gate) -> Gate:
    spacing = max(first.spacing, second.spacing)
    latest = max(first.spacing + first.jitter, second.spacing + second.jitter)
    return Gate(first.name, spacing, latest - spacing, min(first.concurrency, second.concurrency))
