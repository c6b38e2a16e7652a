"""Arguments and options that several commands share, and how their text is read."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from holdfast.errors import UserError
from holdfast.model import ItemStatus
from holdfast.tables.types import NO_HEADER

PIPELINE = typer.Argument(
    ...,
    metavar="PIPELINE",
    help="Python file (FILE.py:NAME if it has several pipelines) or installed pipeline.",
)
PIPELINES = typer.Argument(
    ...,
    metavar="PIPELINE …",
    help="Python files (FILE.py:NAME for one of several pipelines) or installed pipelines.",
)
OFFERED_PIPELINES = typer.Argument(
    None,
    metavar="[PIPELINE …]",
    help="Python files or installed pipelines that this server offers for new jobs.",
)
OPTION = typer.Option(
    [],
    "--option",
    metavar="NAME=VALUE",
    help="Option passed to the pipeline as ctx.options. Can be repeated.",
)
ENCODING = typer.Option(None, "--encoding", help="Encoding of the input. Default: detected.")
DELIMITER = typer.Option(None, "--delimiter", help="Delimiter of the input. Default: detected.")
SHEET = typer.Option(None, "--sheet", help="Sheet of the workbook. Default: the first.")
WITHOUT_HEADER = typer.Option(False, "--no-header", help="The first row is data.")
HEADER_ROW = typer.Option(
    None, "--header-row", min=1, help="Number of the row that names the columns."
)


def header_row_of(no_header: bool, header_row: int | None) -> int | None:
    """Returns the row that names the columns, as the two options say."""
    if no_header and header_row is not None:
        raise typer.BadParameter("--no-header and --header-row exclude each other.")
    return NO_HEADER if no_header else header_row


COLUMN = typer.Option(
    [],
    "--column",
    metavar="COLUMN=FIELD",
    help="Column of the input to use as a field of the pipeline. Can be repeated.",
)
JOB = typer.Argument(..., metavar="JOB", help="Number of the job, as shown by `holdfast jobs`.")
STATUS = typer.Option(None, "--status", help="Only these statuses, e.g. ERROR,NOT_FOUND.")
JSON = typer.Option(False, "--json", help="Print JSON to standard output.")
HOST = typer.Option("127.0.0.1", "--host", help="Address to listen on.")
HEALTH_PORT = typer.Option(
    None,
    "--health-port",
    min=0,
    max=65535,
    help="Serve /healthz, /readyz and /metrics on this port. Default: HOLDFAST_HEALTH_PORT.",
)


def parse_options(pairs: Sequence[str]) -> dict[str, str]:
    options = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or not name:
            raise UserError(f"--option {pair!r} is not of the form NAME=VALUE")
        options[name] = value
    return options


def parse_columns(pairs: Sequence[str]) -> dict[str, str]:
    """Parses COLUMN=FIELD. The last equals sign divides, because a header may contain some."""
    columns = {}
    for pair in pairs:
        column, separator, field = pair.rpartition("=")
        if not separator or not column or not field:
            raise UserError(f"--column {pair!r} is not of the form COLUMN=FIELD")
        columns[column] = field
    return columns


def parse_statuses(text: str | None) -> list[ItemStatus]:
    """Parses statuses such as ERROR,NOT_FOUND."""
    statuses = []
    for word in (text or "").split(","):
        name = word.strip().upper().replace("-", "_")
        if not name:
            continue
        if name not in ItemStatus.__members__:
            raise UserError(
                f"there is no status {word.strip()!r}", f"Statuses: {', '.join(ItemStatus)}."
            )
        statuses.append(ItemStatus(name))
    return statuses
