"""`holdfast open` and `add`: standing jobs, which accept records at any time."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any, cast

import orjson
import structlog
import typer

from holdfast.cli.arguments import (
    DELIMITER,
    ENCODING,
    HEADER_ROW,
    JOB,
    OPTION,
    PIPELINE,
    SHEET,
    WITHOUT_HEADER,
    parse_options,
)
from holdfast.cli.composition import table_limits
from holdfast.cli.opening import (
    ensure_schema,
    opened_store,
    ready_settings,
    run_async,
    settings_from_environment,
)
from holdfast.cli.output import errors
from holdfast.cli.pipelines import load_pipeline
from holdfast.cli.run_job import open_table
from holdfast.cli.run_summary import print_detected
from holdfast.engine.adding import Adding, Records
from holdfast.engine.control import Control
from holdfast.errors import InputError
from holdfast.options import checked_options
from holdfast.settings import Settings
from holdfast.tables.bad_rows import bad_row
from holdfast.tables.jsonlines import reason_against
from holdfast.tables.plan import read_as
from holdfast.tables.types import NO_HEADER, Progress, TableOptions

_BATCH_ROWS = 1000
_BATCH_BYTES = 4 * 1024 * 1024
_LINES_BYTES = 1024 * 1024
_LOOK_SECONDS = 0.001
#: JSON may write a character of one byte in six.
_ESCAPED = 6
Rows = list[Any]


def register(app: typer.Typer) -> None:
    app.command("open")(open_job)
    app.command("add")(add)


def open_job(pipeline: str = PIPELINE, option: list[str] = OPTION) -> None:
    """Open the standing job of a pipeline, which accepts records at any time and does not end.

    There is one for each pipeline and owner: a second `holdfast open` shows the first one's
    number. Applications add records with `holdfast.enqueue`.
    """
    settings = settings_from_environment()
    recipe = load_pipeline(pipeline, settings)
    options = checked_options(recipe.name, recipe.options, parse_options(option))
    ensure_schema(settings)

    async def main() -> tuple[int, bool]:
        async with opened_store(settings) as store:
            control = Control(store, settings.owner, structlog.get_logger())
            return await control.open(recipe, options)

    job_id, is_new = run_async(main())
    done = "is open" if is_new else "was open already"
    errors.print(f"Job {job_id} of {recipe.name} {done}.", markup=False)


def add(
    job_id: int = JOB,
    input: Path = typer.Argument(
        ..., metavar="FILE|-", help="A table or JSON Lines file; - reads JSON lines."
    ),
    key: str | None = typer.Option(
        None, "--key", help="Field whose value is the key: known records are not added again."
    ),
    encoding: str | None = ENCODING,
    delimiter: str | None = DELIMITER,
    sheet: str | None = SHEET,
    no_header: bool = WITHOUT_HEADER,
    header_row: int | None = HEADER_ROW,
) -> None:
    """Add records to a standing job.

    Each batch is stored before the next one is read. Without --key, the same command adds the
    records again.
    """
    settings = ready_settings()
    table = {
        "encoding": encoding,
        "delimiter": delimiter,
        "sheet": sheet,
        "header_row": NO_HEADER if no_header else header_row,
    }
    if str(input) == "-":
        batches = lines_of(
            cast(BufferedReader, sys.stdin.buffer), TableOptions(**table_limits(settings))
        )
    else:
        batches = _table_rows(input, table, settings)
    run_async(add_batches(settings, job_id, key, batches))


async def add_batches(
    settings: Settings, job_id: int, key: str | None, batches: Iterator[Rows]
) -> None:
    accepted = known = 0
    async with opened_store(settings) as store:
        job = await store.reads.job(job_id)
        adding = Adding(store, {}, settings.max_input_bytes, structlog.get_logger())
        try:
            for rows in batches:
                # While it waited for input, it could not see that the server closed a connection.
                await asyncio.sleep(_LOOK_SECONDS)
                enqueued = await adding.add(job, Records(rows, key))
                accepted, known = accepted + enqueued.accepted, known + enqueued.known
        finally:  # what was stored before an error stays
            errors.print(f"{accepted:,} records added, {known:,} already known.", markup=False)


def lines_of(stream: BufferedReader, options: TableOptions) -> Iterator[Rows]:
    """What has arrived so far: the first records of a slow program do not wait for the last."""
    progress, number = Progress(), 0
    for lines in _arriving(stream, _ESCAPED * options.max_row_bytes):
        rows = []
        for line in lines:
            number += 1
            text = line.decode("utf-8", "surrogateescape").strip(" \t\r\n\ufeff")
            if text:
                progress.row += 1
                rows.append(_row(text, number, progress, options))
        yield rows


def _arriving(stream: BufferedReader, most_bytes: int) -> Iterator[list[bytes]]:
    rest = b""
    while arrived := stream.read1(_LINES_BYTES):
        *lines, rest = (rest + arrived).split(b"\n")
        if len(rest) > most_bytes:
            raise InputError(f"a line has more than {most_bytes:,} bytes")
        yield lines
    yield [rest]


def _row(text: str, number: int, progress: Progress, options: TableOptions) -> Any:
    reason = reason_against(text, options)
    if reason is None:
        return orjson.loads(text)
    if progress.row == 1:
        raise InputError(f"line {number:,} {reason}.", "Give one object in each line.")
    return orjson.loads(bad_row(reason, number, text, progress, options))


def _table_rows(path: Path, table: Mapping[str, Any], settings: Settings) -> Iterator[Rows]:
    with open_table(path, table, settings) as file:
        print_detected(path.name, read_as(file.detected, {}))
        for batch in file.pages(0, lambda: _BATCH_ROWS, _BATCH_BYTES):
            yield [orjson.loads(text) for text in batch.inputs]
            if batch.end:
                return
