"""`holdfast run`: ingests, processes and exports.

It can be stopped at any moment and continued by the same command."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import typer

from holdfast.cli.arguments import (
    COLUMN,
    DELIMITER,
    ENCODING,
    HEADER_ROW,
    OPTION,
    PIPELINE,
    SHEET,
    WITHOUT_HEADER,
    header_row_of,
    parse_columns,
    parse_options,
)
from holdfast.cli.opening import ensure_schema, run_async, settings_from_environment
from holdfast.cli.pipelines import load_pipeline
from holdfast.cli.run_images import are_images
from holdfast.cli.run_job import JobRun, Request, open_table
from holdfast.cli.run_planned import PlannedRun, run_planned
from holdfast.configuration import Settings
from holdfast.errors import UserError
from holdfast.options import checked_options
from holdfast.tables.writers import format_of


def register(app: typer.Typer) -> None:
    app.command("run")(run)


def run(
    pipeline: str = PIPELINE,
    inputs: list[Path] | None = typer.Argument(
        None,
        metavar="[INPUT]...",
        help="CSV, TSV, XLSX or JSON Lines file, images, or a zip of images; omit it if the "
        "pipeline discovers its records.",
    ),
    out: Path | None = typer.Option(
        None, "--out", help="Write the results to this .csv, .xlsx or .jsonl file."
    ),
    new: bool = typer.Option(False, "--new", help="Start a new job instead of continuing one."),
    encoding: str | None = ENCODING,
    delimiter: str | None = DELIMITER,
    sheet: str | None = SHEET,
    no_header: bool = WITHOUT_HEADER,
    header_row: int | None = HEADER_ROW,
    column: list[str] = COLUMN,
    option: list[str] = OPTION,
    max_items: int | None = typer.Option(
        None, "--max-items", min=1, help="Stop after N new items."
    ),
    max_per_source: int | None = typer.Option(
        None, "--max-per-source", min=1, help="Stop each source after N new items."
    ),
    take_over: bool = typer.Option(
        False,
        "--take-over",
        help="Start even if another owner's job could continue; its checkpoint is lost.",
    ),
    workers: int | None = typer.Option(
        None, "--workers", min=1, help="Number of worker processes."
    ),
    work: bool = typer.Option(
        True, "--work/--no-work", help="--no-work only reads the records in, without processing."
    ),
) -> None:
    """Read records in, process them and write the results.

    Stop it with Ctrl-C, a power cut or kill -9: the same command continues where it stopped. A job
    is identified by its pipeline and the content of its input; --new starts another one.

    Exit codes: 0 finished; 3 finished, but some items ended with status ERROR; 1 not finished; 130
    or 143 stopped by Ctrl-C or SIGTERM.
    """
    settings = settings_from_environment()
    recipe = load_pipeline(pipeline, settings)
    given = inputs or []
    images = given if given and are_images(given) else []
    request = Request(
        reference=pipeline,
        pipeline=recipe,
        input=given[0] if given and not images else None,
        out=out,
        new=new,
        work=work,
        workers=workers or settings.workers,
        table={
            "encoding": encoding,
            "delimiter": delimiter,
            "sheet": sheet,
            "header_row": header_row_of(no_header, header_row),
        },
        columns=parse_columns(column),
        options=checked_options(recipe.name, recipe.options, parse_options(option)),
        max_items=max_items,
        max_per_source=max_per_source,
        take_over=take_over,
        images=images,
    )
    raise typer.Exit(run_request(settings, request))


def run_request(settings: Settings, request: Request) -> int:
    """Carries out the request in the foreground; returns the exit code."""
    _check_request(request)
    if request.pipeline.plans:
        return run_planned(
            settings,
            PlannedRun(
                request.reference,
                request.pipeline,
                request.options,
                request.workers,
                request.work,
            ),
        )
    file = None if request.input is None else open_table(request.input, request.table, settings)
    ensure_schema(settings, [request.pipeline.extension])
    code = run_async(JobRun(settings, request, file).run())
    sys.stdout.flush()
    return code


def _check_request(request: Request) -> None:
    pipeline = request.pipeline
    has_input = request.input is not None or bool(request.images)
    if not has_input and not pipeline.discovers:
        raise UserError(
            f"the pipeline {pipeline.name} needs an input file",
            f"Use `holdfast run {request.reference} INPUT.csv`, or give the pipeline a `discover` "
            "method.",
        )
    if pipeline.plans and (has_input or request.out is not None):
        raise UserError(
            f"the pipeline {pipeline.name} plans its own jobs and accepts neither an input nor "
            "--out",
            "Omit them; `holdfast export JOB --out FILE` writes the results of a job.",
        )
    if request.out is not None:
        _check_output(request.out, request.input)


def _check_output(out: Path, input: Path | None) -> None:
    """Checks the output before the work, not after hours of it."""
    format_of(out, None)
    if input is not None and out.resolve() == input.resolve():
        raise UserError(
            f"--out {out} is the input file", "Choose another file name for the results."
        )
    if out.is_dir():
        raise UserError(f"{out} is a folder", "Give the name of a file inside it.")
    if not out.parent.is_dir():
        raise UserError(
            f"there is no folder {out.parent}", f"Create it with: mkdir -p {out.parent}"
        )
    if not os.access(out.parent, os.W_OK):
        raise UserError(f"the folder {out.parent} is not writable", "Choose another for --out.")
