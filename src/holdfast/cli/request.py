"""What a `holdfast run` asks for, and what cannot be asked."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    options: dict[str, Any]
    caps: Caps
    take_over: bool = False


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


def open_table(path: Path, table: dict[str, Any], settings: Settings) -> TableFile:
    limits = {
        "max_cell_bytes": settings.max_input_bytes,
        "max_row_bytes": settings.max_input_bytes,
        "max_workbook_bytes": settings.max_workbook_bytes,
    }
    return files.open_table(path, {**table, **limits})


def table_of(job: Job) -> dict[str, Any]:
    return {name: value for name, value in job.options.get("_table", {}).items() if value}
