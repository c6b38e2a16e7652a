"""`holdfast open` and `add`: standing jobs, which accept records at any time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import structlog
import typer

from holdfast.cli.arguments import JOB, OPTION, PIPELINE, parse_options
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
from holdfast.engine.adding import Adding, Records
from holdfast.engine.control import Control
from holdfast.errors import UserError
from holdfast.options import checked_options
from holdfast.settings import Settings

_BATCH_ROWS = 1000
_BATCH_BYTES = 4 * 1024 * 1024
_LINES_BYTES = 1024 * 1024


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
) -> None:
    """Add records to a standing job.

    Each batch is stored before the next one is read. Without --key, the same command adds the
    records again.
    """
    settings = ready_settings()
    batches = _lines() if str(input) == "-" else _table_rows(input, settings)

    async def main() -> tuple[int, int]:
        accepted = known = 0
        async with opened_store(settings) as store:
            job = await store.reads.job(job_id)
            adding = Adding(store, {}, settings.max_input_bytes, structlog.get_logger())
            for rows in batches:
                enqueued = await adding.add(job, Records(rows, key))
                accepted, known = accepted + enqueued.accepted, known + enqueued.known
        return accepted, known

    accepted, known = run_async(main())
    errors.print(f"{accepted:,} records added, {known:,} already known.", markup=False)


def _lines() -> Iterator[list[Any]]:
    """What comes at a time: the first records of a slow program do not wait for the last."""
    while lines := sys.stdin.buffer.readlines(_LINES_BYTES):
        try:
            yield [orjson.loads(line) for line in lines if line.strip()]
        except orjson.JSONDecodeError as error:
            raise UserError(
                f"a line is not JSON: {error}", "Give one object in each line."
            ) from error


def _table_rows(path: Path, settings: Settings) -> Iterator[list[Any]]:
    with open_table(path, {}, settings) as file:
        for batch in file.pages(0, lambda: _BATCH_ROWS, _BATCH_BYTES):
            yield [orjson.loads(text) for text in batch.inputs]
            if batch.end:
                return
