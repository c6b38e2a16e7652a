"""`holdfast open` and `add`: standing jobs, which accept records at any time."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from io import BufferedReader
from pathlib import Path
from random import Random
from typing import Any, cast
from uuid import uuid4

import orjson
import structlog
import typer

from holdfast.cli.arguments import (
    COLUMN,
    DELIMITER,
    ENCODING,
    HEADER_ROW,
    JOB,
    OPTION,
    PIPELINE,
    SHEET,
    WITHOUT_HEADER,
    header_row_of,
    parse_columns,
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
from holdfast.cli.pipelines import is_extension, load_all, load_pipeline
from holdfast.cli.run_job import open_table
from holdfast.cli.run_summary import print_detected
from holdfast.columns import (
    BAD_ROW,
    NAMES,
    Inputs,
    chosen_names,
    column_mapping,
    require_chosen_names,
    require_fields,
    with_names,
)
from holdfast.configuration import Settings
from holdfast.errors import InputError, TwinColumns, UserError
from holdfast.features.jobs.added_files import FileRows
from holdfast.kernel.arrivals.adding import Adding, added_words, require_open
from holdfast.kernel.arrivals.enqueue import Addition
from holdfast.kernel.arrivals.idempotency import MessageKey
from holdfast.kernel.jobs.control import Control, JobRequest
from holdfast.kernel.worker.patience import patiently
from holdfast.model import Job
from holdfast.options import checked_options
from holdfast.pipeline import Pipeline
from holdfast.tables.bad_rows import bad_row
from holdfast.tables.jsonlines import reason_against
from holdfast.tables.types import Progress, TableOptions
from holdfast_client.adding import Enqueued

_BATCH_ROWS = 1000
_LINES_BYTES = 1024 * 1024
_LOOK_SECONDS = 0.001
#: JSON may write a character of one byte in six.
_ESCAPED = 6
_NO_KEY = (
    "The pipeline's key is not known here, so known records are added again. Name the pipeline with"
    " --pipeline FILE.py, or the field with --key."
)
_UNREADABLE = "{:,} of them could not be read and will end as ERROR (BAD_ROW)."
Rows = list[Any]


def register(app: typer.Typer) -> None:
    app.command("open")(open_job)
    app.command("add")(add)


def open_job(pipeline: str = PIPELINE, option: list[str] = OPTION) -> None:
    """Open the standing job of a pipeline, which accepts records at any time and does not end.

    There is one for each pipeline and owner: a second `holdfast open` shows the first one's
    number. Applications add records with `holdfast_client.enqueue`.
    """
    settings = settings_from_environment()
    recipe = load_pipeline(pipeline, settings)
    options = checked_options(recipe.name, recipe.options, parse_options(option))
    ensure_schema(settings, [recipe.extension])

    async def main() -> tuple[int, bool]:
        async with opened_store(settings) as store:
            control = Control(store, settings.owner, structlog.get_logger())
            return await control.open(JobRequest(recipe, options, by_admin=True))

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
    run_at: str | None = typer.Option(
        None,
        "--run-at",
        metavar="TIME",
        help="Process them at this time, e.g. 2026-03-01T06:00:00Z.",
    ),
    encoding: str | None = ENCODING,
    delimiter: str | None = DELIMITER,
    sheet: str | None = SHEET,
    no_header: bool = WITHOUT_HEADER,
    header_row: int | None = HEADER_ROW,
    column: list[str] = COLUMN,
    pipeline: str | None = typer.Option(
        None, "--pipeline", metavar="FILE.py", help="The job's pipeline, if it is in a file."
    ),
) -> None:
    """Add records to a standing job.

    Each batch is stored before the next one is read. Without --key, the pipeline's own key counts,
    if it has one and is installed or named by --pipeline; otherwise the same command adds the
    records again.
    """
    settings = ready_settings()
    table = {
        "encoding": encoding,
        "delimiter": delimiter,
        "sheet": sheet,
        "header_row": header_row_of(no_header, header_row),
    }
    columns = parse_columns(column)

    def batches(inputs: Inputs) -> Iterator[Rows]:
        if str(input) != "-":
            return _table_rows(input, inputs, table, columns, settings)
        require_fields(inputs, columns)
        stream, limits = cast(BufferedReader, sys.stdin.buffer), table_limits(settings)
        return _named(lines_of(stream, TableOptions(**limits)), inputs, columns)

    run_async(add_batches(settings, job_id, key, batches, pipeline, _instant(run_at)))


def _named(batches: Iterator[Rows], inputs: Inputs, chosen: Mapping[str, str]) -> Iterator[Rows]:
    """Renames fields; each line may have other ones.

    Two for one field are refused in the first line, as in the columns of a file; later, only that
    line cannot be read."""
    is_first = True
    for rows in batches:
        named = []
        for row in rows:
            try:
                named.append(_with_chosen(row, inputs, chosen))
            except TwinColumns as twins:
                if is_first:
                    raise
                named.append({**row, BAD_ROW: twins.of_row})
            is_first = False
        yield named


def _with_chosen(row: Any, inputs: Inputs, chosen: Mapping[str, str]) -> Any:
    if NAMES in row:
        require_chosen_names(row)
    if not chosen:
        return row
    mapping = column_mapping(list(row), inputs, {c: f for c, f in chosen.items() if c in row})
    return with_names(row, chosen_names(list(row), inputs, mapping))


async def add_batches(
    settings: Settings,
    job_id: int,
    key: str | None,
    batches: Callable[[Inputs], Iterator[Rows]],
    reference: str | None = None,
    run_at: datetime | None = None,
) -> None:
    accepted = known = unreadable = 0
    async with opened_store(settings) as store:
        job = await store.reads.job(job_id)
        pipelines = _pipelines_of(job, reference, settings)
        adding = Adding(store, pipelines, settings.items.max_input_bytes, structlog.get_logger())
        require_open(job)
        if key is None and adding.lacks_key(job):
            errors.print(_NO_KEY, markup=False)
        try:
            for rows in batches(adding.inputs(job)):
                # While it waited for input, it could not notice that the server closed a
                # connection.
                await asyncio.sleep(_LOOK_SECONDS)
                enqueued = await _add(adding, adding.addition(job, rows, key, run_at))
                accepted, known = accepted + enqueued.accepted, known + enqueued.known
                unreadable += sum(isinstance(row, Mapping) and BAD_ROW in row for row in rows)
        finally:  # what was stored before an error stays
            errors.print(added_words(accepted, known), markup=False)
            if unreadable:
                errors.print(_UNREADABLE.format(unreadable), markup=False)


async def _add(adding: Adding, addition: Addition) -> Enqueued:
    """Adds a batch; waits while the database is gone.

    A batch that was stored, and whose reply was lost, is not stored twice; it is counted as
    added."""
    send = partial(adding.add, addition, MessageKey(f"add-{uuid4()}", "add"))
    return await patiently(send, adding.log, Random())


def _instant(text: str | None) -> datetime | None:
    if text is None:
        return None
    example = "For example: 2026-03-01T06:00:00Z"
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise UserError(f"{text!r} is not a time", example) from None
    if instant.tzinfo is None:
        raise UserError(f"{text!r} has no time zone", example)
    return instant


def _pipelines_of(job: Job, reference: str | None, settings: Settings) -> dict[str, Pipeline]:
    """Returns the job's pipeline, if this command has it."""
    if reference is None:
        return load_all([job.pipeline], settings) if is_extension(job.pipeline) else {}
    pipelines = load_all([reference], settings)
    if job.pipeline not in pipelines:
        raise UserError(
            f"{reference} does not define {job.pipeline!r}, the pipeline of job {job.id}",
            f"It has: {', '.join(sorted(pipelines))}.",
        )
    return pipelines


def lines_of(stream: BufferedReader, options: TableOptions) -> Iterator[Rows]:
    """Yields the rows that have arrived so far: the first records of a slow program do not wait for
    the last."""
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


def _table_rows(
    path: Path,
    inputs: Inputs,
    table: Mapping[str, Any],
    columns: Mapping[str, str],
    settings: Settings,
) -> Iterator[Rows]:
    with open_table(path, table, settings) as file:
        rows = FileRows(file, inputs, table, columns)
        print_detected(path.name, rows.read_as)
        yield from rows.batches(_BATCH_ROWS)
