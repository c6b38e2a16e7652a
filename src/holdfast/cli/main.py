"""The program: its commands, and how mistakes are shown."""

from __future__ import annotations

import sys

import typer

from holdfast import __version__
from holdfast.cli import (
    accounts,
    broker,
    dead,
    flags,
    fleet,
    inspecting,
    orders,
    running,
    schedules,
    serving,
    setting_up,
    up,
    working,
)
from holdfast.cli.extensions import Commands
from holdfast.cli.output import tell
from holdfast.errors import BrokerGone, DatabaseGone, HoldfastError, UserError

app = typer.Typer(
    name="holdfast",
    cls=Commands,
    help="Pull large sets of records from places that fail: nothing is lost, nothing is done "
    "twice, every row is explained.\n\n"
    "Start with: holdfast run PIPELINE.py INPUT.csv --out RESULTS.xlsx",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)


def _version(asked: bool) -> None:
    if asked:
        print(f"holdfast {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version."
    ),
) -> None:
    pass


FAMILIES = (
    running,
    inspecting,
    orders,
    dead,
    working,
    fleet,
    broker,
    schedules,
    flags,
    up,
    serving,
    accounts,
    setting_up,
)
for family in FAMILIES:
    family.register(app)


def main() -> None:
    try:
        app()
    except UserError as error:
        _end(error.message, error.hint)
    except DatabaseGone as error:
        _end(
            f"the database cannot be reached: {error}",
            "Start it, or mend HOLDFAST_DATABASE_URL; `holdfast doctor` checks the set-up.",
        )
    except BrokerGone as error:
        _end(
            f"the broker cannot be reached: {error}",
            "Start it, or mend HOLDFAST_BROKER_URL; `holdfast doctor` checks the set-up.",
        )
    except HoldfastError as error:
        _end(str(error), None)


def _end(message: str, hint: str | None) -> None:
    tell(message, hint)
    sys.exit(1)
