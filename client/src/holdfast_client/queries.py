"""The queries by which records are added, by name. The store of Holdfast uses them too."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from holdfast_client.names import names_for_adding

FOLDER = Path(__file__).parent / "sql"
_HEADING = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_COMMENT = re.compile(r"^--.*\n", re.MULTILINE)
_PARAMETER = re.compile(r"'[^']*'|(?<![:\w]):([a-z_]\w*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Query:
    sql: str
    parameters: tuple[str, ...]


@cache
def load_queries(dialect: str, schema: str) -> Mapping[str, Query]:
    """Returns the queries for a database whose tables of Holdfast are in this schema."""
    names = names_for_adding(schema)
    _, *pieces = _HEADING.split((FOLDER / f"{dialect}.sql").read_text("utf-8"))
    texts = zip(pieces[::2], pieces[1::2], strict=True)
    return {
        name: Query(*numbered(dialect, names.in_query(dialect, _statement(text))))
        for name, text in texts
    }


def _statement(text: str) -> str:
    return _COMMENT.sub("", text).strip().rstrip(";")


def numbered(dialect: str, sql: str) -> tuple[str, tuple[str, ...]]:
    """Returns the statement as its database takes it, and the names of its parameters in order.
    PostgreSQL numbers them."""
    names: list[str] = []

    def number(match: re.Match[str]) -> str:
        name = match[1]
        if name is None:
            return match[0]
        if name not in names:
            names.append(name)
        return f"${names.index(name) + 1}" if dialect == "postgres" else match[0]

    return _PARAMETER.sub(number, sql), tuple(names)


def named_arguments(query: Query, params: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a statement for SQLite, which takes lists as JSON."""
    return {name: _argument(params[name]) for name in query.parameters}


def _argument(value: Any) -> Any:
    return orjson.dumps(value).decode() if isinstance(value, list) else value
