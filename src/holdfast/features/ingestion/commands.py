"""`holdfast ingest`: adapters that take files from folders, FTP servers and buckets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import typer

from holdfast.cli.api_parts import opened_parts
from holdfast.cli.arguments import JSON, OPTION, PIPELINE, parse_options
from holdfast.cli.opening import (
    ensure_schema,
    opened_store,
    ready_settings,
    run_async,
    settings_from_environment,
)
from holdfast.cli.output import errors, instant, print_json, print_table
from holdfast.cli.pipelines import is_extension, load_all, load_pipeline
from holdfast.configuration import Settings
from holdfast.errors import UserError
from holdfast.features.console import open_console
from holdfast.features.ingestion.adapter_scans import ScanReport, scan_named
from holdfast.features.ingestion.adapters import AdapterKind, NewAdapter
from holdfast.kernel.jobs.control import refuse_by_hand
from holdfast.options import checked_options
from holdfast.pipeline import Pipeline

NAME = typer.Argument(..., metavar="NAME", help="Name of the adapter.")


def register(app: typer.Typer) -> None:
    family = typer.Typer(
        no_args_is_help=True, help="Take files from folders, FTP servers and buckets."
    )
    family.command("add")(add)
    family.command("list")(list_adapters)
    family.command("scan")(scan)
    family.command("remove")(remove)
    app.add_typer(family, name="ingest")


def add(
    name: str = NAME,
    pipeline: str = PIPELINE,
    address: str = typer.Argument(
        ...,
        metavar="ADDRESS",
        help="A folder, ftp://USER@HOST/FOLDER, ftps://…, or s3://BUCKET/PREFIX.",
    ),
    option: list[str] = OPTION,
    marker: str = typer.Option(
        "", "--marker", help="A file is complete once another one with this suffix is there: .done"
    ),
    settle: float = typer.Option(
        5.0, "--settle", min=0, help="Seconds without change after which a file is complete."
    ),
    every: float = typer.Option(30.0, "--every", min=1, help="Seconds between two scans."),
    owner: str | None = typer.Option(
        None, "--owner", help="Owner of its jobs. Default: HOLDFAST_OWNER."
    ),
) -> None:
    """Watch a folder, an FTP server or a bucket.

    Each file that arrives becomes a job. A server (`holdfast up`, `holdfast api`) that has the
    pipeline scans it. Files that were taken
    are moved to `done`, files that cannot be read to `failed`, with the reason.
    """
    settings = settings_from_environment()
    recipe = load_pipeline(pipeline, settings)
    refuse_by_hand(recipe)
    kind, place = _kind_of(address)
    options = checked_options(recipe.name, recipe.options, parse_options(option))
    new = NewAdapter(
        name, kind, place, recipe.name, owner or settings.owner, options, marker, settle, every
    )
    ensure_schema(settings, [recipe.extension])

    async def main() -> None:
        async with opened_store(settings) as store:
            await open_console(store).adapters.set_adapter(new, settings.owner)

    run_async(main())
    errors.print(f"{name} takes files from {place}.", markup=False)
    _warn_of_folder(new, settings)


def _warn_of_folder(adapter: NewAdapter, settings: Settings) -> None:
    """Warns of a folder that is not open here: only a note, because the servers have their own
    settings."""
    if adapter.kind is not AdapterKind.FOLDER:
        return
    place = Path(adapter.address).resolve()
    if not any(place.is_relative_to(root.resolve()) for root in settings.files.roots):
        errors.print(
            f"  Note: it is not in a folder of HOLDFAST_FILE_ROOTS here"
            f" ({', '.join(map(str, settings.files.roots)) or 'none is set'}). Servers take nothing"
            " from it unless they have it there.",
            markup=False,
        )


def _kind_of(address: str) -> tuple[AdapterKind, str]:
    if address.startswith("s3://"):
        return AdapterKind.S3, address.removeprefix("s3://")
    if address.startswith(("ftp://", "ftps://")):
        return AdapterKind.FTP, address
    if "://" in address:
        raise UserError(
            f"{address!r} is not an address of a place",
            "Give a folder, ftp://USER@HOST/FOLDER, ftps://…, or s3://BUCKET/PREFIX.",
        )
    return AdapterKind.FOLDER, str(Path(address).absolute())


def list_adapters(as_json: bool = JSON) -> None:
    """List the adapters, and why the last scan failed."""
    settings = ready_settings()

    async def main() -> None:
        async with opened_store(settings) as store:
            adapters = await open_console(store).adapters.all()
        if as_json:
            print_json([asdict(adapter) for adapter in adapters])
            return
        rows = [
            (each.name, each.kind, each.address, each.pipeline, each.owner,
             instant(each.scanned_at) if each.scanned_at else None, each.error)
            for each in adapters
        ]  # fmt: skip
        names = ("name", "kind", "address", "pipeline", "owner", "scanned", "error")
        print_table(names, rows, "No adapters. Add one with: holdfast ingest add")

    run_async(main())


def scan(
    name: str | None = typer.Argument(
        None, metavar="[NAME]", help="Only this adapter. Default: all."
    ),
    pipeline: list[str] = typer.Option(
        [], "--pipeline", metavar="FILE.py", help="Pipeline of an adapter, if it is in a file."
    ),
    as_json: bool = JSON,
) -> None:
    """Scan for files now, in this process.

    Exit code 1 if a place could not be scanned.
    """
    settings = ready_settings()

    async def main() -> list[ScanReport]:
        async with opened_store(settings) as store:
            adapters = await open_console(store).adapters.all()
        used = {each.pipeline for each in adapters if name in (None, each.name)}
        pipelines = _pipelines_of(used, pipeline, settings)
        async with opened_parts(settings, pipelines) as parts:
            return await scan_named(parts.scans, [] if name is None else [name], None)

    reports = run_async(main())
    if as_json:
        print_json([asdict(report) for report in reports])
    else:
        rows = [
            (each.adapter, ", ".join(map(str, each.taken)), each.waiting, each.duplicates,
             each.refused, "another process scans it" if each.busy else each.error)
            for each in reports
        ]  # fmt: skip
        names = ("adapter", "new jobs", "waiting", "duplicates", "refused", "error")
        right = ("waiting", "duplicates", "refused")
        print_table(names, rows, "No adapters. Add one with: holdfast ingest add", right=right)
    if any(report.error for report in reports):
        raise typer.Exit(1)


def _pipelines_of(
    used: set[str], references: Sequence[str], settings: Settings
) -> dict[str, Pipeline]:
    given = load_all(references, settings)
    for name in sorted(used - set(given)):
        if not is_extension(name):
            raise UserError(
                f"the pipeline {name} is not installed",
                f"Name the file that has it: holdfast ingest scan --pipeline {name}.py",
            )
    return given | load_all(sorted(used - set(given)), settings)


def remove(name: str = NAME) -> None:
    """Stop taking files from a place. Its jobs stay, and so do the files."""
    settings = ready_settings()

    async def main() -> None:
        async with opened_store(settings) as store:
            await open_console(store).adapters.remove_adapter(name, settings.owner)

    run_async(main())
    errors.print(f"{name} is removed.", markup=False)
