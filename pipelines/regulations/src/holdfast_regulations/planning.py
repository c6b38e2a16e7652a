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
from holdfast.model import Json, Lane, StreamState, StreamStatus
from holdfast.orders import Planned, Start
from holdfast.pipeline import StreamStatuses
from holdfast_regulations.options import RegulationsOptions
from holdfast_regulations.runs import Run, gates_of, run_of, stored_source
from holdfast_regulations.sources import Source


async def plan(
    request: Json,
    streams: StreamStatuses,
    sources: Mapping[str, Source],
    options: RegulationsOptions,
) -> Planned:
    if "follow" in request:
        return Planned()
    if "force_full" in request:
        request = {"sources": request["force_full"], "restart": True}
    run = run_of(request, sources, options)
    starts = starts_of(run, await streams([source.slug for source in run.sources]))
    return Planned(starts, [_shown(start) for start in starts])


def starts_of(run: Run, known: Sequence[StreamStatus]) -> list[Start]:
    """Returns the jobs of a run, given how the streams of its sources stand."""
    runs = run.by_mode()
    if run.lane is Lane.SENTINEL:
        runs = [_idle_only(part, known) for part in runs]
    return [_start(part, known) for part in runs if part.sources]


def _idle_only(run: Run, known: Sequence[StreamStatus]) -> Run:
    """Returns the run without sources that are being read: yesterday's pass may still wait for a
    closed gate, and then it continues alone."""
    busy = {stream.source for stream in _of(run, known) if stream.live}
    return replace(run, sources=tuple(s for s in run.sources if s.slug not in busy))


def _start(run: Run, known: Sequence[StreamStatus]) -> Start:
    by_source = {stream.source: stream for stream in _of(run, known)}
    for stream in by_source.values():
        if stream.live and stream.state in (StreamState.RUNNING, StreamState.FAILED):
            raise UnfitState(
                f"{stream.source} is already being read by job {stream.job_id}"
                f" ({stream.job_state})",
                f"Wait for it, or cancel it: holdfast cancel {stream.job_id}",
            )
    stopped = {} if run.restart else _positions(by_source)
    return Start(
        [source.slug for source in run.sources],
        run.stream_mode,
        run.name,
        run.options,
        lane=run.lane,
        max_items=run.max_urls,
        max_items_per_source={source.slug: run.cap_of(source) for source in run.sources},
        gates=gates_of(run.sources, run.delay_ms),
        plan={
            "sources": {source.slug: stored_source(source) for source in run.sources},
            "from": stopped,
        },
    )


def _of(run: Run, known: Sequence[StreamStatus]) -> list[StreamStatus]:
    slugs = {source.slug for source in run.sources}
    return [s for s in known if s.mode == run.stream_mode and s.source in slugs]


def _positions(by_source: Mapping[str, StreamStatus]) -> Json:
    """Returns where streams stopped that did not come to their end.

    One that did, but left a sitemap that cannot be read, begins again: anything new since then is
    before its place."""
    return {
        source: stream.cursor
        for source, stream in by_source.items()
        if stream.state is not StreamState.COMPLETE
        and stream.cursor is not None
        and not (stream.cursor["at"] or {}).get("ended")
    }


def _shown(start: Start) -> Json:
    return {
        "sources": ", ".join(start.sources),
        "mode": start.mode,
        "max_urls": start.max_items,
        "continues": ", ".join(start.plan["from"]) or "from the beginning",
    }
