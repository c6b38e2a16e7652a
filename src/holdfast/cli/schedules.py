"""`schedule`: jobs that start by the clock."""

from __future__ import annotations

import typer

from holdfast.cli.composition import (
    ensure_schema,
    opened_store,
    run_async,
    settings_from_environment,
)
from holdfast.cli.inspecting import ready_settings
from holdfast.cli.loading import load_pipeline
from holdfast.cli.output import JSON_OPTION, errors, instant, print_json, print_table
from holdfast.cli.request import parse_options
from holdfast.clock import SystemClock
from holdfast.engine.upkeep import next_fire
from holdfast.errors import UserError
from holdfast.options import checked_options


def register(app: typer.Typer) -> None:
    family = typer.Typer(no_args_is_help=True, help="Jobs that start by the clock.")
    family.command("add")(add)
    family.command("list")(list_schedules)
    family.command("remove")(remove)
    app.add_typer(family, name="schedule")


def add(
    name: str = typer.Argument(..., metavar="NAME", help="What to call it; an old one gives way."),
    pipeline: str = typer.Argument(
        ...,
        metavar="PIPELINE",
        help="The file with the pipeline (FILE.py:name for one of many), or a built-in one.",
    ),
    cron: str = typer.Option(..., "--cron", help='E.g. "0 6 * * *": six every morning.'),
    zone: str = typer.Option("UTC", "--zone", help="The time zone of the cron expression."),
    option: list[str] = typer.Option(
        [], "--option", metavar="NAME=VALUE", help="For the pipeline: ctx.options."
    ),
) -> None:
    """Start a pipeline that discovers its records by the clock; a worker has to be running."""
    settings = settings_from_environment()
    ensure_schema(settings)
    found = load_pipeline(pipeline, settings)
    if not found.discovers:
        raise UserError(
            f"the pipeline {found.name} has no `discover`",
            "Only pipelines that find their records by themselves can be scheduled.",
        )
    options = checked_options(found.name, found.options, parse_options(option))
    next_at = next_fire(cron, zone, SystemClock().now())

    async def main() -> None:
        async with opened_store(settings) as store:
            await store.schedules.set_schedule(
                name, found.name, cron, zone, options, next_at, settings.owner
            )

    run_async(main())
    errors.print(
        f"Schedule {name}: {found.name} next at {instant(next_at)}, where a worker with it runs "
        f"(holdfast work {pipeline}).",
        markup=False,
    )


def list_schedules(as_json: bool = JSON_OPTION) -> None:
    """List the schedules."""
    settings = ready_settings()

    async def main() -> None:
        async with opened_store(settings) as store:
            found = await store.schedules.all()
        if as_json:
            print_json(found)
            return
        names = ("name", "reference", "cron", "zone", "next_at", "last_at", "last_job_id", "error")
        print_table(
            ("name", "pipeline", "cron", "zone", "next", "last", "job", "error"),
            [[one[name] for name in names] for one in found],
            "No schedules. Add one with: holdfast schedule add NAME PIPELINE.py --cron …",
        )

    run_async(main())


def remove(
    name: str = typer.Argument(..., metavar="NAME", help="As `holdfast schedule list` shows it."),
) -> None:
    """Remove a schedule; the jobs it started stay."""
    settings = ready_settings()

    async def main() -> bool:
        async with opened_store(settings) as store:
            return await store.schedules.remove_schedule(name, settings.owner)

    if not run_async(main()):
        raise UserError(f"there is no schedule {name!r}", "`holdfast schedule list` lists them.")
    errors.print(f"Schedule {name} is removed.", markup=False)
