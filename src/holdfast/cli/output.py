"""How data is printed: tables for people, JSON for scripts."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, is_dataclass
from datetime import datetime
from typing import Any

import orjson
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

JSON_OPTION = typer.Option(False, "--json", help="Print JSON on standard output.")
STATUS_STYLES = {
    "DONE": "green",
    "ERROR": "red",
    "FAILED": "red",
    "NOT_FOUND": "yellow",
    "SKIPPED": "dim",
    "RUNNING": "cyan",
    "PAUSED": "yellow",
    "CANCELLED": "dim",
}

console = Console(highlight=False)
errors = Console(stderr=True, highlight=False)


def print_json(value: Any) -> None:
    sys.stdout.buffer.write(orjson.dumps(value, option=orjson.OPT_INDENT_2, default=_plain))
    sys.stdout.buffer.write(b"\n")
    sys.stdout.flush()


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if hasattr(value, "_asdict"):
        return value._asdict()
    return str(value)


def print_table(
    headers: Sequence[str], rows: Iterable[Sequence[Any]], empty: str, right: Sequence[str] = ()
) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for header in headers:
        table.add_column(header, justify="right" if header in right else "left")
    count = 0
    for row in rows:
        table.add_row(*(cell(value) for value in row))
        count += 1
    if count:
        console.print(table)
    else:
        console.print(empty)


def cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return instant(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    text = str(value)
    style = STATUS_STYLES.get(text)
    return f"[{style}]{text}[/]" if style else escape(text)


def instant(value: datetime) -> str:
    """Local time, as people read it."""
    return value.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def seconds_left(seconds: float) -> str:
    """A duration as people say it."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
