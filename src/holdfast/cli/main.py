"""The program: its commands, and how errors are shown."""

from __future__ import annotations

import sys

import typer

from holdfast import __version__
from holdfast.cli.lazy_commands import Commands
from holdfast.cli.output import print_error
from holdfast.errors import BrokerGone, DatabaseGone, HoldfastError, UserError

app = typer.Typer(
    name="holdfast",
    cls=Commands,
    help="Process large sets of records from unreliable sources: nothing is lost, nothing is done "
    "twice, and every row has a result or a reason.\n\n"
    "Start with: holdfast run PIPELINE.py INPUT.csv --out RESULTS.xlsx",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"holdfast {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Show the version."
    ),
) -> None:
    pass


def main() -> None:
    try:
        _check_arguments(sys.argv[1:])
        app()
    except UserError as error:
        _exit(error.message, error.hint)
    except DatabaseGone as error:
        _exit(
            f"the database cannot be reached: {error}",
            "Start it, or correct HOLDFAST_DATABASE_URL; `holdfast doctor` checks the setup.",
        )
    except BrokerGone as error:
        _exit(
            f"the broker cannot be reached: {error}",
            "Start it, or correct HOLDFAST_BROKER_URL; `holdfast doctor` checks the setup.",
        )
    except HoldfastError as error:
        _exit(str(error), None)


def _check_arguments(arguments: list[str]) -> None:
    """Bytes that are not UTF-8 cannot be stored as text."""
    for argument in arguments:
        shown = argument.encode(errors="backslashreplace").decode()
        if shown != argument:
            raise UserError(
                f"the argument {shown!r} is not UTF-8 text", "A file can be given another name."
            )


def _exit(message: str, hint: str | None) -> None:
    print_error(message, hint)
    sys.exit(1)
