"""Prints tables for people, JSON for scripts, and errors with a hint."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, is_dataclass
from datetime import datetime
from typing import Any, TextIO

import orjson
from rich.console import Console
from rich.markup import escape
from rich.table import Table

STATUS_STYLES = {
    "DONE": "green",
    "ERROR": "red",
    "FAILED": "red",
    "NOT_FOUND": "yellow",
    "SKIPPED": "dim",
    "RUNNING": "cyan",
    "PAUSED": "yellow",
    "CANCELLED": "dim",
    "DELETING": "dim",
}

#: Output that does not go to a terminal is neither wrapped nor cut.
_UNBOUNDED = 1_000_000
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


def _console(stream: TextIO, stderr: bool = False) -> Console:
    width = None if stream.isatty() else _UNBOUNDED
    return Console(stderr=stderr, highlight=False, width=width)


console = _console(sys.stdout)
errors = _console(sys.stderr, stderr=True)


def print_json(value: Any) -> None:
    sys.stdout.buffer.write(orjson.dumps(value, option=orjson.OPT_INDENT_2, default=_plain))
    sys.stdout.buffer.write(b"\n")
    sys.stdout.flush()


class JsonArray:
    """A JSON array of any length that is printed while its values are read, in little memory."""

    def __init__(self) -> None:
        self._before = b"[\n  "

    def add(self, value: Any) -> None:
        text = orjson.dumps(value, option=orjson.OPT_INDENT_2, default=_plain)
        # No string contains a line break: JSON escapes it.
        sys.stdout.buffer.write(self._before + text.replace(b"\n", b"\n  "))
        self._before = b",\n  "

    def end(self) -> None:
        sys.stdout.buffer.write(b"[]\n" if self._before.startswith(b"[") else b"\n]\n")
        sys.stdout.flush()


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if hasattr(value, "_asdict"):
        return value._asdict()
    return str(value)


def print_table(
    headers: Sequence[str],
    rows: Iterable[Sequence[Any]],
    empty: str,
    right: Sequence[str] = (),
    shown: Callable[[Any], str] | None = None,
) -> None:
    """Prints a table. Headers and cells are data: markup in them is not interpreted."""
    shown = shown or cell
    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for header in headers:
        table.add_column(text_cell(header), justify="right" if header in right else "left")
    count = 0
    for row in rows:
        table.add_row(*(shown(value) for value in row))
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
    return text_cell(str(value))


def text_cell(text: str) -> str:
    """Returns the text on one line, with control characters escaped."""
    style = STATUS_STYLES.get(text)
    if style:
        return f"[{style}]{text}[/]"
    return escape(_CONTROL.sub(lambda match: repr(match[0])[1:-1], text))


def instant(value: datetime) -> str:
    """Formats an instant in local time, for people."""
    return value.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def reason_text(kind: str, text: str, until: datetime | None) -> str:
    """Returns why a job is not running. The kind is not repeated if the text begins with it."""
    if until is not None:
        return f"{kind} {instant(until)}: {text}"
    return text if text.startswith(kind) else f"{kind}: {text}"


def seconds_left(seconds: float) -> str:
    """Formats a duration for people."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def print_error(message: str, hint: str | None) -> None:
    """Prints what went wrong, and what to do next."""
    errors.print(f"[bold red]Error:[/] {escape(message)}", soft_wrap=True)
    if hint:
        errors.print(escape(hint), soft_wrap=True)
