"""`jobs`, `show`, `items`, `export`: what there is, and what became of it."""

from __future__ import annotations

import sys
from contextlib import aclosing
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
import typer

from holdfast.cli.composition import opened_store, run_async, settings_from_environment
from holdfast.cli.exporting import print_export
from holdfast.cli.output import (
    JSON_OPTION,
    cell,
    console,
    errors,
    instant,
    print_json,
    print_table,
    reason_text,
    text_cell,
)
from holdfast.console import open_console
from holdfast.console.grid import Chosen, grid_of, write_export
from holdfast.console.items import ItemFilter, ItemView
from holdfast.console.why import why_not_running
from holdfast.database_url import sqlite_file
from holdfast.errors import UserError
from holdfast.model import ItemStatus, Job
from holdfast.observe.tracing import parse
from holdfast.settings import Settings
from holdfast.store import Store
from holdfast.store.migrate import require_current
from holdfast.tables.writers import FORMATS, format_of, plain_text

_JOB = typer.Argument(..., metavar="JOB", help="The job's number, as `holdfast jobs` shows it.")
_STATUS = typer.Option(None, "--status", help="Only these, e.g. ERROR,NOT_FOUND.")


_SUMMARY_CHARACTERS = 60


def register(app: typer.Typer) -> None:
    app.command("jobs")(jobs)
    app.command("show")(show)
    app.command("items")(items)
    app.command("export")(export)


def statuses_of(text: str | None) -> list[ItemStatus]:
    """ERROR,NOT_FOUND as statuses; an unknown one is refused with the known ones."""
    found = []
    for word in (text or "").split(","):
        name = word.strip().upper().replace("-", "_")
        if not name:
            continue
        if name not in ItemStatus.__members__:
            raise UserError(
                f"there is no status {word.strip()!r}", f"Statuses: {', '.join(ItemStatus)}."
            )
        found.append(ItemStatus(name))
    return found


def ready_settings() -> Settings:
    """The settings, where there is a database that fits the program."""
    settings = settings_from_environment()
    file = sqlite_file(settings.database_url)
    if file is not None and not file.exists():
        raise UserError(
            f"there is no database at {file} yet",
            "The first command that writes makes it, such as `holdfast run` or `holdfast up`. If "
            "you have one, go to its folder, or name it with HOLDFAST_DATABASE_URL or "
            "HOLDFAST_DATA_DIR.",
        )
    require_current(settings.database_url)
    return settings


def jobs(
    limit: int = typer.Option(50, "--limit", min=1, help="So many, the newest first."),
    as_json: bool = JSON_OPTION,
) -> None:
    """List the jobs, the newest first."""
    settings = ready_settings()

    async def main() -> None:
        async with opened_store(settings) as store:
            newest = await open_console(store).jobs.page(None, limit)
            rows = [(job, counters) for job, counters, _ in newest]
        if as_json:
            print_json([_job_json(job, counters) for job, counters in rows])
            return
        print_table(
            ("job", "pipeline", "name", "state", "accepted", "done", "not found", "error", "open",
             "created"),
            [
                (job.id, job.pipeline, job.name, job.state, c.accepted, c.done, c.not_found,
                 c.error, c.open, job.created_at)
                for job, c in rows
            ],
            "No jobs yet. Start one: holdfast run PIPELINE.py INPUT.csv --out RESULTS.xlsx",
            right=("job", "accepted", "done", "not found", "error", "open"),
        )  # fmt: skip

    run_async(main())


def show(
    job_id: int = _JOB,
    verify: bool = typer.Option(False, "--verify", help="Count the rows and compare."),
    as_json: bool = JSON_OPTION,
) -> None:
    """Show a job: its state and counters, its streams and ranges, and why it is not running."""
    settings = ready_settings()

    async def main() -> int:
        async with opened_store(settings) as store:
            told = await _tell_job(store, settings, job_id, verify)
        if as_json:
            print_json(told)
        else:
            _print_job(told)
        return 1 if told.get("problems") else 0

    raise typer.Exit(run_async(main()))


async def _tell_job(store: Store, settings: Settings, job_id: int, verify: bool) -> dict[str, Any]:
    job = await store.reads.job(job_id)
    told = _job_json(job, await store.reads.counters(job_id))
    told["heartbeat_at"] = await open_console(store).jobs.heartbeat(job_id)
    told["why"] = await why_not_running(
        open_console(store), job, settings.worker_lost_seconds, settings.backfill_enabled
    )
    told["streams"] = await store.reads.streams(job_id)
    told["ranges_count"] = await open_console(store).ranges.count(job_id)
    told["ranges"] = await open_console(store).ranges.of_job(job_id, 20)
    told["errors"] = await open_console(store).jobs.errors_by_code(job_id)
    told["decisions"] = await open_console(store).jobs.decisions(job_id, 10)
    if verify:
        told["problems"] = (await store.reads.verify(job_id)).problems
    return told


def _job_json(job: Job, counters: Any) -> dict[str, Any]:
    names = ("id", "pipeline", "name", "state", "owner_id", "mode", "lane", "max_items", "error",
             "created_at", "started_at", "finished_at", "updated_at", "discovered_at")  # fmt: skip
    counts = {name: getattr(counters, name) for name in
              ("accepted", "done", "not_found", "skipped", "error", "open", "retried",
               "throttled", "known")}  # fmt: skip
    ids = parse(job.trace)
    told = {name: getattr(job, name) for name in names}
    return told | {"trace_id": ids and ids.trace_id, "counters": counts}


def _print_job(told: dict[str, Any]) -> None:
    counts = told["counters"]
    console.print(
        f"[bold]Job {told['id']}[/] {cell(told['state'])} · {cell(told['pipeline'])} · "
        f"{cell(told['name'])}"
    )
    console.print(" · ".join(f"{n.replace('_', ' ')} {c:,}" for n, c in counts.items()))
    for name in ("created_at", "started_at", "finished_at", "heartbeat_at"):
        if told[name]:
            console.print(f"{name.removesuffix('_at')} {instant(told[name])}")
    if told["trace_id"]:
        console.print(f"trace {told['trace_id']}")
    if told["error"]:
        console.print(f"[red]{cell(told['error'])}[/]")
    why = told["why"]
    if why is not None:
        text = reason_text(why.kind, why.text, why.until)
        console.print(f"[yellow]Not running: {text_cell(text)}[/]")
    if "problems" in told:
        verdict = "; ".join(told["problems"]) or "the counters equal the rows"
        console.print(f"Verified: {verdict}")
    _print_details(told)


def _print_details(told: dict[str, Any]) -> None:
    console.print()
    print_table(
        ("stream", "state", "pages", "records", "items", "error"),
        [(s.source, s.state, s.pages_count, s.records_count, s.items_count, s.error)
         for s in told["streams"]],
        "No streams.",
    )  # fmt: skip
    if told["ranges"]:
        console.print(f"\n{told['ranges_count']:,} ranges; the first:")
        print_table(
            ("range", "items", "kind", "due", "leased by", "until", "expiries"),
            [(r.id, f"{r.lo}..{r.hi}", "again" if r.again else "fresh", r.available_at, r.worker,
              r.expires_at, r.expiries) for r in told["ranges"]],
            "",
        )  # fmt: skip
    if told["errors"]:
        console.print()
        print_table(
            ("error", "items", "first", "last", "for example"),
            [(e.code, e.count if e.exact else f"about {e.count:,}", e.first_at, e.last_at,
              (e.sample or "")[:60]) for e in told["errors"]],
            "",
        )  # fmt: skip
    if told["decisions"]:
        console.print("\nHow it adapted, the latest first:")
        for found in told["decisions"]:
            console.print(
                f"  {found['what']} {found['was']:g} → {found['became']:g}: {cell(found['why'])}"
            )


def items(
    job_id: int = _JOB,
    status: str | None = _STATUS,
    item: int | None = typer.Option(None, "--item", help="One item with its whole story."),
    limit: int = typer.Option(50, "--limit", min=0, help="So many at most; 0 for all."),
    as_json: bool = JSON_OPTION,
) -> None:
    """List a job's items and what became of each, or one item's whole story."""
    settings = ready_settings()
    statuses = statuses_of(status)

    async def main() -> None:
        async with opened_store(settings) as store:
            job = await store.reads.job(job_id)
            if item is not None:
                _print_item(await _tell_item(store, job_id, item), as_json)
                return
            found, more = [], False
            every = open_console(store).items.every(job, ItemFilter(tuple(statuses)))
            async with aclosing(every) as pages:
                async for page in pages:
                    found += page
                    if limit and len(found) > limit:
                        found, more = found[:limit], True
                        break
        if as_json:
            print_json([_item_json(one) for one in found])
            return
        _print_items(job, found, any(one.ruling for one in found))
        if more:
            errors.print(f"The first {limit}; --limit 0 shows all.")

    run_async(main())


def _item_json(item: ItemView) -> dict[str, Any]:
    told = item._asdict() | {"input": orjson.loads(item.input)}
    return told | {"result": None if item.result is None else orjson.loads(item.result)}


def _print_items(job: Job, found: list[ItemView], ruled: bool) -> None:
    """Rows without a result say which record they are."""
    grid = grid_of(job, found, ruled)
    columns = grid.columns
    rows = [[row.get(name) for name in columns] for row in map(grid.row, found)]
    if any(item.status is not ItemStatus.DONE for item in found):
        columns = [*columns, "input"]
        for row, item in zip(rows, found, strict=True):
            row.append(None if item.status is ItemStatus.DONE else _summary(item))
    print_table(columns, rows, "No items.", shown=lambda value: text_cell(plain_text(value)))


def _summary(item: ItemView) -> str:
    values = [str(value) for value in orjson.loads(item.input).values() if value]
    text = ", ".join(values[:3])
    return text if len(text) <= _SUMMARY_CHARACTERS else text[: _SUMMARY_CHARACTERS - 1] + "…"


async def _tell_item(store: Store, job_id: int, seq: int) -> dict[str, Any]:
    told = await open_console(store).items.item(job_id, seq)
    if told is None:
        raise UserError(f"job {job_id} has no item {seq}", "`holdfast items` lists them.")
    for name in ("input", "normalized", "result"):
        told[name] = None if told[name] is None else orjson.loads(told[name])
    told["status"] = told["status"] or ItemStatus.PENDING
    told["tries_before"] = await open_console(store).items.attempts(job_id, seq)
    return told


def _print_item(told: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(told)
        return
    for name, value in told.items():
        if name != "tries_before" and value is not None:
            text = cell(value) if isinstance(value, datetime) else text_cell(plain_text(value))
            console.print(f"[bold]{name}[/] {text}", soft_wrap=True)
    for tried in told["tries_before"]:
        console.print(
            f"  try {tried['number']} at {instant(tried['at'])}: {tried['status']} "
            f"{cell(tried['error_code'])} {cell(tried['error_message'])}",
            soft_wrap=True,
        )


def export(
    job_id: int = _JOB,
    format: str | None = typer.Option(None, "--format", help=f"One of {', '.join(FORMATS)}."),
    out: Path | None = typer.Option(None, "--out", help="The file; without it, standard output."),
    status: str | None = _STATUS,
    with_input: bool = typer.Option(False, "--with-input", help="Also the columns that went in."),
) -> None:
    """Write a job's results again: the same values in the same order as `items` shows."""
    settings = ready_settings()
    wanted = Chosen(ItemFilter(tuple(statuses_of(status))))
    if out is None and format is None:
        raise UserError("say which format", f"--format {'|'.join(FORMATS)}, or --out FILE.csv")
    chosen = format_of(out or Path("export"), format)
    if out is None and chosen == "xlsx" and sys.stdout.isatty():
        raise UserError("a workbook on the screen helps nobody", "Give --out FILE.xlsx.")

    async def main() -> None:
        async with opened_store(settings) as store:
            console = open_console(store)
            job = await store.reads.job(job_id)
            if out is None:
                notes = await print_export(console, job, chosen, wanted, with_input)
            else:
                notes = await write_export(console, job, out, chosen, wanted, with_input)
        for note in notes:
            errors.print(note, markup=False)
        if out is not None:
            errors.print(f"Written: {out}", markup=False)

    run_async(main())
