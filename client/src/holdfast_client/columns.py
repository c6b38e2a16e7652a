"""What the names of a record's fields may say about how it is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from holdfast_client.errors import TwinColumns

#: Marks a row that could not be read: its value is the reason. No column may have this name.
BAD_ROW = "_bad_row"
#: In a record of a standing job: column -> field, if a person chose others than its names show.
NAMES = "_names"


def require_chosen_names(row: Mapping[str, Any]) -> None:
    """Refuses a record whose own mapping reads two of its columns as one field."""
    chosen = own_names(row)
    if chosen is not None:
        refuse_twins([name for name in row if name != NAMES], chosen)


def own_names(row: Mapping[str, Any]) -> Mapping[str, str] | None:
    """Returns the mapping that a record has of its own, if any. Applications may have a field of
    this name themselves."""
    names = row[NAMES]
    is_mapping = isinstance(names, dict) and all(isinstance(each, str) for each in names.values())
    return names if is_mapping else None


def refuse_twins(columns: Iterable[str], mapping: Mapping[str, str]) -> None:
    """Two columns for one field would lose cells."""
    sources: dict[str, str] = {}
    for column in columns:
        field = mapping.get(column, column)
        first = sources.setdefault(field, column)
        if first != column:
            raise TwinColumns(first, column, field)
