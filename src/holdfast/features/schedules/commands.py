"""`holdfast schedule`: jobs that start at set times."""

from __future__ import annotations

from datetime import datetime

import typer

from holdfast.cli.arguments import JSON, OPTION, PIPELINE, parse_options
from holdfast.cli.opening import (
    ensure_schema,
    opened_store,
    ready_settings,
    run_async,
    settings_from_environment,
)
from holdfast.cli.output import errors, instant, print_json, print_table
from holdfast.cli.pipelines import load_pipeline
from holdfast.clock import SystemClock
from holdfast.features.schedules.rules import ScheduleRequest, remove_schedule, set_schedule
from holdfast.features.schedules.table import Schedules


def register(app: typer.Typer) -> None:
    family = typer.Typer(no_args_is_help=True, help="Start jobs at set times.")
    family.command("add")(add)
    family.command("list")(list_schedules)
    family.command("remove")(remove)
    app.add_typer(family, name="schedule")


def add(
    name: str = typer.Argument(
        ..., metavar="NAME", help="Name of the schedule; replaces one with the same name."
    ),
    pipeline: str = PIPELINE,
    cron: str = typer.Option(
        ..., "--cron", help='Cron expression, e.g. "0 6 * * *" for 6 a.m. every day.'
    ),
    zone: str = typer.Option("UTC", "--zone", help="Time zone of the cron expression."),
    option: list[str] = OPTION,
) -> None:
    """Schedule a pipeline that discovers its records. A worker or timers must be running."""
    settings = settings_from_environment()
    recipe = load_pipeline(pipeline, settings)
    ensure_schema(settings, [recipe.extension])
    request = ScheduleRequest(name, cron, zone, parse_options(option))

    async def main() -> datetime:
        async with opened_store(settings) as store:
            return await set_schedule(store, recipe, request, settings.owner, SystemClock())

    next_at = run_async(main())
    errors.print(
        f"Schedule {name}: {recipe.name} starts next at {instant(next_at)}, if a worker for it is "
        f"running (holdfast work {pipeline}).",
        markup=False,
    )


def list_schedules(as_json: bool = JSON) -> None:
    """List the schedules."""
    settings = ready_settings()

    async def main() -> None:
        async with opened_store(settings) as store:
            schedules = await Schedules(store.database).all()
        if as_json:
            print_json(schedules)
            return
        names = ("name", "reference", "cron", "zone", "next_at", "last_at", "last_job_id", "error")
        print_table(
            ("name", "pipeline", "cron", "zone", "next", "last", "job", "error"),
            [[row[name] for name in names] for row in schedules],
            "No schedules. Add one with: holdfast schedule add NAME PIPELINE.py --cron …",
        )

    run_async(main())


def remove(
    name: str = typer.Argument(
        ..., metavar="NAME", help="Name of the schedule, as shown by `holdfast schedule list`."
    ),
) -> None:
    """Remove a schedule; the jobs that it started are kept."""

    settings = ready_settings()

    async def main() -> None:
        async with opened_store(settings) as store:
            await remove_schedule(store, name, settings.owner)

    run_async(main())
    errors.print(f"Schedule {name} was removed.", markup=False)
