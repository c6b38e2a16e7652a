"""`holdfast export`: writes the results of a job to a file or to standard output."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import typer

from holdfast.cli.arguments import JOB, STATUS, parse_statuses
from holdfast.cli.opening import opened_store, ready_settings, run_async
from holdfast.cli.output import errors
from holdfast.errors import UserError
from holdfast.features.console import Console, open_console
from holdfast.features.items.grid import Chosen, write_export
from holdfast.features.items.items import ItemFilter
from holdfast.model import Job
from holdfast.tables.writers import FORMATS, format_of


def register(app: typer.Typer) -> None:
    app.command("export")(export)


def export(
    job_id: int = JOB,
    format: str | None = typer.Option(None, "--format", help=f"One of {', '.join(FORMATS)}."),
    out: Path | None = typer.Option(None, "--out", help="File to write. Default: standard output."),
    status: str | None = STATUS,
    with_input: bool = typer.Option(
        False, "--with-input", help="Include the columns of the input."
    ),
) -> None:
    """Write the results of a job: the same values in the same order as `holdfast items`."""
    settings = ready_settings()
    chosen = Chosen(ItemFilter(tuple(parse_statuses(status))))
    if out is None and format is None:
        raise UserError(
            "no format is given", f"Use --format {'|'.join(FORMATS)}, or --out FILE.csv."
        )
    format = format_of(out or Path("export"), format)
    if out is None and format == "xlsx" and sys.stdout.isatty():
        raise UserError("a terminal cannot show a workbook", "Use --out FILE.xlsx.")

    async def main() -> None:
        async with opened_store(settings) as store:
            console, job = open_console(store), await store.reads.job(job_id)
            if out is None:
                notes = await _print_export(console, job, format, chosen, with_input)
            else:
                notes = await write_export(console, job, out, format, chosen, with_input)
        for note in notes:
            errors.print(note, markup=False)
        if out is not None:
            errors.print(f"Results: {out}", markup=False)

    run_async(main())


async def _print_export(
    console: Console, job: Job, format: str, chosen: Chosen, with_input: bool
) -> list[str]:
    """Prints the same bytes as `write_export` writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"export.{format}"
        notes = await write_export(console, job, path, format, chosen, with_input)
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                sys.stdout.buffer.write(block)
    sys.stdout.flush()
    return notes
