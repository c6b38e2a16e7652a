"""`holdfast regulations`: sources, runs and evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Any

import typer

from holdfast.cli.arguments import JSON
from holdfast.cli.dry_discovery import dry_starts
from holdfast.cli.opening import (
    opened_store,
    ready_settings,
    run_async,
    settings_from_environment,
)
from holdfast.cli.output import errors, print_json, print_table
from holdfast.cli.own_files import pipeline_files
from holdfast.cli.run_planned import PlannedRun, run_planned
from holdfast.clock import SystemClock
from holdfast.configuration import Settings
from holdfast.model import Json, Lane, StreamStatus
from holdfast.orders import Start
from holdfast.tables.writers import whole_file
from holdfast_regulations.options import PIPELINE
from holdfast_regulations.pipeline import Regulations
from holdfast_regulations.planning import starts_of
from holdfast_regulations.runs import chosen_sources, run_of
from holdfast_regulations.sources import Source
from holdfast_regulations.sources_file import read_sources, shipped_sources
from holdfast_regulations.verifying import Report, verify
from holdfast_regulations.warc_export import warc_parts

app = typer.Typer(no_args_is_help=True)
sources_app = typer.Typer(no_args_is_help=True)
app.add_typer(sources_app, name="sources", help="List and check sources.")


class RunMode(StrEnum):
    SITEMAP = "sitemap"
    ARCHIVE = "archive"
    PAGINATION = "pagination"
    RECHECK = "recheck"


SOURCES_FILE = typer.Option(
    None,
    "--sources",
    metavar="FILE",
    help="Sources file. Default: HOLDFAST_REGULATIONS_SOURCES, or the sources that come with"
    " Holdfast.",
)
SOURCE = typer.Option(
    None,
    "--source",
    metavar="SLUG",
    help="Slug or host of a source. Can be repeated. Default: all.",
)


@sources_app.command("check")
def check_sources(
    file: Path | None = typer.Argument(
        None, metavar="FILE", help="Sources file, in TOML. Default: as for --sources."
    ),
    named: Path | None = SOURCES_FILE,
) -> None:
    """Check a sources file.

    Prints every mistake with its line and field; the exit code is 1 if there is one.
    """
    settings = settings_from_environment()
    sources = _sources(settings, file or named)
    name = file or named or settings.of(PIPELINE).sources or "the sources that come with Holdfast"
    errors.print(f"{name}: {len(sources)} sources, no mistakes.", markup=False)


@sources_app.command("list")
def list_sources(file: Path | None = SOURCES_FILE, as_json: bool = JSON) -> None:
    """List the sources and when each was last verified."""
    sources = list(_sources(settings_from_environment(), file).values())
    if as_json:
        print_json([_shown(source) for source in sources])
        return
    names = ("slug", "name", "modes", "hosts", "delay", "verified")
    rows = [[_shown(source)[name] for name in names] for source in sources]
    print_table(names, rows, "No sources.")


def _shown(source: Source) -> Json:
    gate = source.gate
    return {
        "slug": source.slug,
        "name": source.name,
        "modes": ", ".join(source.modes),
        "hosts": ", ".join(source.hosts),
        "delay": f"{gate.min_delay_seconds:g} to {gate.max_delay_seconds:g} s",
        "verified": str(source.verified),
    }


@app.command("backfill")
def backfill(
    source: list[str] | None = SOURCE,
    mode: RunMode | None = typer.Option(
        None,
        "--mode",
        help="How URLs are found; recheck fetches known documents again. Default: as each source"
        " says.",
    ),
    max_urls: int | None = typer.Option(
        None, "--max-urls", min=1, help="Cap on new URLs of the run. Default: 1,000."
    ),
    max_urls_per_source: int | None = typer.Option(
        None, "--max-urls-per-source", min=1, help="Cap on new URLs of each source. Default: 500."
    ),
    date_from: str | None = typer.Option(
        None, "--from", metavar="DAY", help="First day of publication, YYYY-MM-DD, in Zagreb."
    ),
    date_to: str | None = typer.Option(
        None, "--to", metavar="DAY", help="Last day of publication, YYYY-MM-DD, in Zagreb."
    ),
    concurrency: int | None = typer.Option(
        None, "--concurrency", min=1, help="Sources that are read at once. Default: 2."
    ),
    delay_ms: int | None = typer.Option(
        None, "--delay-ms", min=1, help="Longer delay between requests to a host, in milliseconds."
    ),
    recheck_days: int | None = typer.Option(
        None,
        "--recheck-days",
        min=1,
        help="With --mode recheck: fetch documents that were not verified for this many days."
        " Default: 30.",
    ),
    restart: bool = typer.Option(
        False, "--restart", help="Begin at the beginning, not where the last run stopped."
    ),
    sentinel: bool = typer.Option(
        False,
        "--sentinel",
        help="Run as the daily pass: read only what is new, before any backfill.",
    ),
    run_by: str | None = typer.Option(
        None, "--run-by", help="Who asked for the run. Default: HOLDFAST_OWNER."
    ),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Discover and count, without queueing anything."
    ),
    file: Path | None = SOURCES_FILE,
    work: bool = typer.Option(
        True, "--work/--no-work", help="--no-work: leave it to workers that are already running."
    ),
    workers: int | None = typer.Option(None, "--workers", min=1, help="Worker processes."),
    as_json: bool = JSON,
) -> None:
    """Find the URLs of sources, fetch them and store evidence.

    A run that stopped at a cap, or failed, is continued by the next one on the same source.

    Exit code 0: complete; 3: complete, but some URLs failed; 1: it failed or is switched off.
    """
    settings = settings_from_environment()
    given = {
        "sources": source,
        "mode": mode.value if mode else None,
        "lane": Lane.SENTINEL.value if sentinel else Lane.BACKFILL.value,
        "date_from": date_from,
        "date_to": date_to,
        "max_urls": max_urls,
        "max_urls_per_source": max_urls_per_source,
        "concurrency": concurrency,
        "delay_ms": delay_ms,
        "recheck_days": recheck_days,
        "restart": restart,
        "run_by": run_by or settings.owner,
    }
    request = {name: value for name, value in given.items() if value not in (None, False)}
    pipeline = _pipeline(settings, file)
    if dry_run:
        _dry_run(settings, pipeline, request, as_json)
        return
    pipeline.extension, pipeline.enabled_by = PIPELINE, f"{PIPELINE}_enabled"
    run = PlannedRun(
        PIPELINE,
        pipeline,
        request,
        workers or settings.workers,
        work=work,
        show=print_json if as_json else None,
    )
    raise typer.Exit(run_planned(settings, run))


def _dry_run(settings: Settings, pipeline: Regulations, request: Json, as_json: bool) -> None:
    """Discovers without queueing anything, and prints what would be queued."""
    pipeline.extension = PIPELINE  # not its switch, because looking is allowed while it is off
    run = run_of(request, pipeline.known_sources, pipeline.settings)

    def starts(streams: Sequence[StreamStatus]) -> list[Start]:
        return starts_of(run, streams)

    if not as_json:
        print("[backfill] DRY RUN - no jobs will be queued", flush=True)
    walked = dry_starts(settings, pipeline, starts)
    if as_json:
        print_json([_counted(source) for source in walked])
        return
    for each in walked:
        print(f"[backfill] Discovered {each.discovered} URLs from {each.source}")
        existing = f"{each.known} already exist"
        capped = "; stopped at the cap" if each.capped else ""
        print(f"[backfill] Would queue {each.new} new items ({existing}{capped})")


def _counted(walked: Any) -> Json:
    names = ("source", "discovered", "new", "known", "capped")
    return {name: getattr(walked, name) for name in names}


@app.command("verify")
def verify_evidence(
    source: list[str] | None = SOURCE, file: Path | None = SOURCES_FILE, as_json: bool = JSON
) -> None:
    """Hash all evidence again and report what does not match.

    With --source or --sources, only the evidence of those sources.

    Exit code 0: everything is as it was stored; 1: something is damaged or missing.
    """
    settings = ready_settings("regulations")
    only = _only(settings, file, source)

    async def main() -> Report:
        async with opened_store(settings) as store:
            return await verify(store.fetch, pipeline_files(settings, PIPELINE), only)

    report = run_async(main())
    if as_json:
        print_json(report.as_json())
    else:
        rows = [(fault.kind, fault.name, fault.problem) for fault in report.faults]
        print_table(("what", "name", "problem"), rows, "No damage.")
        errors.print(
            f"{report.bodies:,} bodies ({report.bytes:,} bytes) and {report.texts:,} texts hashed,"
            f" {len(report.faults):,} damaged.",
            markup=False,
        )
    raise typer.Exit(1 if report.faults else 0)


@app.command("warc")
def warc(
    out: Path = typer.Option(..., "--out", metavar="FILE", help="File to write, .warc.gz."),
    source: list[str] | None = SOURCE,
    file: Path | None = SOURCES_FILE,
) -> None:
    """Write all captures as a WARC 1.1 file.

    With --source or --sources, only those of these sources. A body that several captures share is
    written once; the others are revisit records.
    """
    settings = ready_settings("regulations")
    only = _only(settings, file, source)

    async def main() -> int:
        captures = count()
        files = pipeline_files(settings, PIPELINE)
        async with opened_store(settings) as store:
            with whole_file(out) as unfinished, unfinished.open("wb") as written:
                async for part in warc_parts(
                    store.fetch, files, out.name, SystemClock().now(), only, captures.__next__
                ):
                    written.write(part)
        return next(captures)

    errors.print(f"{run_async(main()):,} captures: {out}", markup=False)


def _only(settings: Settings, file: Path | None, names: list[str] | None) -> list[str] | None:
    """Returns the slugs of the chosen sources; None if none was chosen."""
    if file is None and not names:
        return None
    return [source.slug for source in chosen_sources(names, _sources(settings, file))]


def _pipeline(settings: Settings, file: Path | None) -> Regulations:
    options = settings.of(PIPELINE)
    return Regulations(replace(options, sources=str(file)) if file else options)


def _sources(settings: Settings, file: Path | None) -> dict[str, Source]:
    path = file or settings.of(PIPELINE).sources
    return read_sources(Path(path)) if path else shipped_sources()
