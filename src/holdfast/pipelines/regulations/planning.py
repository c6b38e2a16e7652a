"""Decides what a request for a run leads to: jobs, or the reason why there is none.

{"sources", "mode", "lane", ...}     a run, see RUN_OPTIONS; also the options of a schedule
{"force_full": source}               read a source again from its beginning

If the last run of a source stopped at a cap or failed, the next one continues from its cursor, if
it asks the same; what was taken before is known by its key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from holdfast.errors import UnfitState
from holdfast.model import Json, Lane, Standing, StreamState
from holdfast.orders import Planned, Start
from holdfast.pipeline import Standings
from holdfast.pipelines.regulations.options import RegulationsOptions
from holdfast.pipelines.regulations.runs import Run, gates_of, run_of, stored_source
from holdfast.pipelines.regulations.sources import Source


async def plan(
    request: Json,
    standings: Standings,
    sources: Mapping[str, Source],
    options: RegulationsOptions,
) -> Planned:
    if "follow" in request:
        return Planned()
    if "force_full" in request:
        request = {"sources": request["force_full"], "restart": True}
    run = run_of(request, sources, options)
    starts = starts_of(run, await standings([source.slug for source in run.sources]))
    return Planned(starts, [_shown(start) for start in starts])


def starts_of(run: Run, known: Sequence[Standing]) -> list[Start]:
    """Returns the jobs of a run, given the standings of its sources' streams."""
    runs = run.by_mode()
    if run.lane is Lane.SENTINEL:
        runs = [_idle_only(part, known) for part in runs]
    return [_start(part, known) for part in runs if part.sources]


def _idle_only(run: Run, known: Sequence[Standing]) -> Run:
    """Returns the run without sources that are being read: yesterday's pass may still wait for a
    closed gate, and then it continues alone."""
    busy = {standing.source for standing in _of(run, known) if standing.live}
    return replace(run, sources=tuple(s for s in run.sources if s.slug not in busy))


def _start(run: Run, known: Sequence[Standing]) -> Start:
    by_source = {standing.source: standing for standing in _of(run, known)}
    for standing in by_source.values():
        if standing.live and standing.state in (StreamState.RUNNING, StreamState.FAILED):
            raise UnfitState(
                f"{standing.source} is already being read by job {standing.job_id}"
                f" ({standing.job_state})",
                f"Wait for it, or cancel it: holdfast cancel {standing.job_id}",
            )
    stopped = {} if run.restart else _positions(by_source)
    return Start(
        [source.slug for source in run.sources],
        run.stream_mode,
        run.name,
        {
            **run.options,
            "_sources": {source.slug: stored_source(source) for source in run.sources},
            "_from": stopped,
        },
        lane=run.lane,
        max_items=run.max_urls,
        max_items_per_source={source.slug: run.cap_of(source) for source in run.sources},
        gates=gates_of(run.sources, run.delay_ms),
    )


def _of(run: Run, known: Sequence[Standing]) -> list[Standing]:
    slugs = {source.slug for source in run.sources}
    return [s for s in known if s.mode == run.stream_mode and s.source in slugs]


def _positions(by_source: Mapping[str, Standing]) -> Json:
    """Returns where streams stopped that did not come to their end.

    One that did, but left a sitemap that cannot be read, begins again: anything new since then is
    before its place."""
    return {
        source: standing.cursor
        for source, standing in by_source.items()
        if standing.state is not StreamState.COMPLETE
        and standing.cursor is not None
        and not (standing.cursor["at"] or {}).get("ended")
    }


def _shown(start: Start) -> Json:
    return {
        "sources": ", ".join(start.sources),
        "mode": start.mode,
        "max_urls": start.max_items,
        "continues": ", ".join(start.options["_from"]) or "from the beginning",
    }
