"""What a `holdfast run` asks for, and what cannot be asked."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.cli.composition import table_limits
from holdfast.engine.control import Caps
from holdfast.errors import UserError
from holdfast.model import Job, Lane
from holdfast.pipeline import Pipeline
from holdfast.settings import Settings
from holdfast.tables import files
from holdfast.tables.files import TableFile
from holdfast.tables.writers import format_of


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for on the command line."""

    reference: str
    pipeline: Pipeline
    input: Path | None
    out: Path | None
    new: bool
    work: bool
    workers: int
    table: dict[str, Any]
    columns: dict[str, str]  # of the input -> fields of the pipeline
    options: dict[str, Any]
    caps: Caps


def refuse_unfitting(request: Request, settings: Settings) -> None:
    pipeline = request.pipeline
    if request.input is None and not pipeline.discovers:
        raise UserError(
            f"the pipeline {pipeline.name} needs an input file",
            f"holdfast run {request.reference} INPUT.csv, or give the pipeline a `discover`.",
        )
    if pipeline.plans and (request.input is not None or request.out is not None):
        raise UserError(
            f"the pipeline {pipeline.name} plans its jobs itself: it takes no input and no --out",
            "Leave them out; `holdfast export JOB --out FILE` writes a job's results.",
        )
    backfill = request.input is None and pipeline.lane in (Lane.UPLOAD, Lane.BACKFILL)
    if backfill and not settings.backfill_enabled:
        raise UserError(
            f"{pipeline.name} is a backfill, and BACKFILL_ENABLED is false",
            "Set BACKFILL_ENABLED=true to run it.",
        )
    if request.out is not None:
        _refuse_output(request.out, request.input)


def _refuse_output(out: Path, input: Path | None) -> None:
    """Before the work, not after hours of it."""
    format_of(out, None)
    if input is not None and out.resolve() == input.resolve():
        raise UserError(f"--out {out} is the input itself", "Give the results another name.")
    if out.is_dir():
        raise UserError(f"{out} is a folder", "Name a file inside it.")
    if not out.parent.is_dir():
        raise UserError(f"there is no folder {out.parent}", f"Make it: mkdir -p {out.parent}")
    if not os.access(out.parent, os.W_OK):
        raise UserError(f"the folder {out.parent} cannot be written", "Choose another for --out.")


def parse_options(pairs: list[str]) -> dict[str, str]:
    options = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or not name:
            raise UserError(f"--option {pair!r} is not NAME=VALUE")
        options[name] = value
    return options


def parse_columns(pairs: list[str]) -> dict[str, str]:
    """COLUMN=FIELD; the last equals sign divides, since a header may hold some."""
    columns = {}
    for pair in pairs:
        column, separator, field = pair.rpartition("=")
        if not separator or not column or not field:
            raise UserError(f"--column {pair!r} is not COLUMN=FIELD")
        columns[column] = field
    return columns


def open_table(path: Path, table: Mapping[str, Any], settings: Settings) -> TableFile:
    return files.open_table(path, {**table, **table_limits(settings)})


def is_read_otherwise(request: Request, job: Job) -> bool:
    """Whether something is said about the input that the job was not made with."""
    table = {name: value for name, value in request.table.items() if value is not None}
    return any(job.table.get(name) != value for name, value in table.items()) or any(
        job.column_names.get(column, column) != field for column, field in request.columns.items()
    )
