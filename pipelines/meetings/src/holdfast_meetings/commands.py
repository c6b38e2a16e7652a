"""`holdfast meetings`: municipalities, their backfills and their pages."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from enum import StrEnum
from pathlib import Path
from typing import Any

import typer

from holdfast.cli.arguments import JSON
from holdfast.cli.opening import opened_store, ready_settings, run_async, settings_from_environment
from holdfast.cli.output import errors, print_json, print_table
from holdfast.cli.pipelines import load_pipeline
from holdfast.cli.run_planned import PlannedRun, ask_plan, run_planned
from holdfast.errors import UserError
from holdfast.model import Json
from holdfast.tables.writers import open_writer
from holdfast_meetings.exporting import PageFormat, lines_of
from holdfast_meetings.reads import EXPORT_COLUMNS, MeetingsReads
from holdfast_meetings.streams import MeetingsStreams, overview

SUBDOMAIN = typer.Argument(..., metavar="SUBDOMAIN", help="Such as alameda.ca.")


app = typer.Typer(no_args_is_help=True)


class BackfillMode(StrEnum):
    AUTO = "auto"
    FULL = "full"
    INCREMENTAL = "incremental"


@app.command("add")
def add(
    subdomain: str = SUBDOMAIN,
    url: str | None = typer.Option(
        None, "--url", help="Address of the site. Default: HOLDFAST_MEETINGS_URL."
    ),
    name: str | None = typer.Option(None, "--name", help="Name for people."),
    state: str | None = typer.Option(None, "--state", help="State or province."),
    country: str | None = typer.Option(None, "--country", help="Country."),
    kind: str | None = typer.Option(None, "--kind", help="City, county, school district …"),
    zone: str | None = typer.Option(
        None, "--zone", help="Time zone, which decides what day it is there."
    ),
) -> None:
    """Register a municipality.

    `holdfast meetings backfill` fetches its pages.
    """
    given = {
        "subdomain": subdomain,
        "url": url,
        "name": name,
        "state": state,
        "country": country,
        "kind": kind,
        "zone": zone,
    }
    settings = settings_from_environment()
    municipality = ask_plan(settings, load_pipeline("meetings", settings), {"add": given})
    errors.print(f"{municipality.subdomain} is registered, at {municipality.url}.", markup=False)
    errors.print(f"Fetch its pages with: holdfast meetings backfill {subdomain}", markup=False)


@app.command("list")
def list_municipalities(as_json: bool = JSON) -> None:
    """List the municipalities and the state of their streams."""
    settings = ready_settings("meetings")

    async def main() -> list[dict[str, Any]]:
        async with opened_store(settings) as store:
            reads = MeetingsReads(store.fetch)
            return await overview(reads, MeetingsStreams(store.streams))

    municipalities = run_async(main())
    if as_json:
        print_json(municipalities)
        return
    rows = [
        (row["subdomain"], row["name"], stream["document_type"], stream["mode"], stream["state"],
         stream["rows"], stream["expected"], stream["verified_at"], stream["error"])
        for row in municipalities
        for stream in row["streams"] or [_NO_STREAM]
    ]  # fmt: skip
    headers = ("municipality", "name", "type", "mode", "state", "rows", "expected", "verified",
               "error")  # fmt: skip
    empty = "No municipalities. Add one with: holdfast meetings add SUBDOMAIN"
    print_table(headers, rows, empty, right=("rows", "expected"))


_NO_STREAM: Json = dict.fromkeys(
    ("document_type", "mode", "rows", "expected", "verified_at", "error")
) | {"state": "not started"}


@app.command("backfill")
def backfill(
    subdomain: str = SUBDOMAIN,
    mode: BackfillMode = typer.Option(
        BackfillMode.AUTO, "--mode", help="auto: full the first time, then the months around today."
    ),
    force: bool = typer.Option(False, "--force", help="Read everything again from the beginning."),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Show what would be done without doing it."
    ),
    work: bool = typer.Option(
        True, "--work/--no-work", help="--no-work: leave it to workers that are already running."
    ),
    workers: int | None = typer.Option(None, "--workers", min=1, help="Worker processes."),
    as_json: bool = JSON,
) -> None:
    """Fetch the missing pages of a municipality.

    A backfill that was stopped or failed continues from its checkpoint.

    Exit code 0: complete, and after a full pass verified; 3: complete, but some rows were
    rejected; 1: it failed; 130 or 143: stopped by Ctrl-C or SIGTERM.
    """
    settings = settings_from_environment()
    request = {"backfill": subdomain, "mode": mode.value, "force": force, "dry_run": dry_run}
    run = PlannedRun(
        "meetings",
        load_pipeline("meetings", settings),
        request,
        workers or settings.workers,
        work=work and not dry_run,
        show=print_json if as_json else _show_decisions,
    )
    raise typer.Exit(run_planned(settings, run))


def _show_decisions(decisions: Sequence[Json]) -> None:
    names = ("subdomain", "document_type", "action", "why")
    rows = [[decision[name] for name in names] for decision in decisions]
    print_table(("municipality", "type", "decision", "why"), rows, "Nothing to do.")


@app.command("export")
def export(
    subdomain: str = SUBDOMAIN,
    format: PageFormat = typer.Option(PageFormat.JSONL, "--format", help="jsonl or csv."),
    out: Path | None = typer.Option(
        None, "--out", help="File to write to. Default: standard output."
    ),
) -> None:
    """Write every page of a municipality as JSON lines or CSV.

    Ordered by date, document and number. Pages that are no longer on the site are left out.
    """
    settings = ready_settings("meetings")

    async def main() -> None:
        async with opened_store(settings) as store:
            reads = MeetingsReads(store.fetch)
            municipality = await reads.municipality(subdomain)
            if municipality is None:
                raise UserError(
                    f"there is no municipality {subdomain!r}",
                    "`holdfast meetings list` lists them.",
                )
            if not await reads.documents(municipality.id, limit=1):
                errors.print(
                    f"{subdomain} has no pages yet. Fetch them with: "
                    f"holdfast meetings backfill {subdomain}",
                    markup=False,
                )
            async with aclosing(reads.every_page(municipality.id)) as batches:
                if out is None:
                    await _print(batches, format)
                else:
                    await _write(batches, out, format)

    run_async(main())


async def _print(batches: AsyncIterator[list[Json]], format: PageFormat) -> None:
    async for part in lines_of(batches, format):
        sys.stdout.buffer.write(part)
    sys.stdout.flush()


async def _write(batches: AsyncIterator[list[Json]], path: Path, format: PageFormat) -> None:
    """Writes a file that appears when it is complete."""
    count = 0
    with open_writer(path, format, EXPORT_COLUMNS) as writer:
        async for rows in batches:
            writer.write(rows)
            count += len(rows)
    errors.print(f"{count:,} pages: {path}", markup=False)
