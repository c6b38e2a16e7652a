"""Reads rows by the names of their columns."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, TypeVar

import orjson

from holdfast.kernel.database.driver import Row
from holdfast.kernel.database.instants import parse_instant

E = TypeVar("E", bound=StrEnum)

#: Higher than every id, for a list that begins with the newest.
LAST_ID = 2**62


def fields_of(row: Row) -> dict[str, Any]:
    """Returns the row as a dictionary with parsed instants."""
    names = row.keys()
    return {name: parse_instant(row[name]) if _is_instant(name) else row[name] for name in names}


def _is_instant(name: str) -> bool:
    return name in ("at", "since") or name.endswith(("_at", "_until"))


def known(other: E, value: str) -> E:
    """Returns the member with that value, or the other one: what another version of the program
    stored must not break a list."""
    kind = type(other)
    return kind(value) if value in kind.__members__ else other


def removed_of(text: str) -> dict[str, int]:
    """Parses the column `removed` of a job: status -> items that retention removed."""
    removed = orjson.loads(text)
    return {str(status): int(count) for status, count in removed.items()}
