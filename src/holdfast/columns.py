"""Maps columns of a file to fields of a pipeline, and renames rows.

A job stores its rows under the names that the file has. The mapping is stored with the job and
applied whenever a row is read. The records of a standing job come from many places: each is matched
by its own names, in the same way, or has a mapping that a person chose.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.errors import InputError, TwinColumns
from holdfast_client.columns import BAD_ROW as BAD_ROW
from holdfast_client.columns import NAMES as NAMES
from holdfast_client.columns import own_names, refuse_twins
from holdfast_client.columns import require_chosen_names as require_chosen_names

#: The fields that a pipeline reads, or each field with other names that it may have in a file.
Inputs = Sequence[str] | Mapping[str, Sequence[str]]

#: Where such a row is, and how it begins.
LINE = "_line"
EXCERPT = "_excerpt"
#: Each column is compared with each field while a person waits for it.
_COMPARED_COLUMNS = 1000
_COMPARED_CHARACTERS = 200
_REMEMBERED = 1000


def column_mapping(
    columns: Sequence[str], inputs: Inputs, chosen: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Maps columns to fields, if the two differ.

    What a person chose comes first. Then each remaining field takes the column with exactly its
    name, else with one of its aliases, else the only column whose name differs from those only in
    case, spaces and punctuation. A part of a name is never enough."""
    mapping = dict(chosen or {})
    taken = set(mapping.values())
    free = [column for column in columns if column not in mapping]
    for field in inputs:
        if field not in taken and field not in free:
            column = _column_for(_names_of(field, inputs), free[:_COMPARED_COLUMNS])
            if column is not None:
                mapping[column] = field
                free.remove(column)
    refuse_twins((*columns, *mapping), mapping)  # later lines of JSON may have other columns
    return mapping


def require_columns(columns: Sequence[str], chosen: Mapping[str, str]) -> None:
    """Refuses a choice about columns that the file does not have."""
    for column in chosen:
        if column not in columns:
            listed = ", ".join(map(repr, columns[:20])) + (" …" if len(columns) > 20 else "")
            raise InputError(f"There is no column {column!r}.", f"The columns are: {listed}.")


def require_fields(inputs: Inputs, chosen: Mapping[str, str]) -> None:
    """Refuses a choice of a field that the pipeline does not read, if it declares what it reads."""
    for column, field in chosen.items():
        if inputs and field != column and field not in inputs:
            raise InputError(
                f"The pipeline has no field {field!r}.", f"Its fields are: {', '.join(inputs)}."
            )


def fields_without_column(
    columns: Sequence[str], inputs: Inputs, mapping: Mapping[str, str]
) -> list[str]:
    present = {mapping.get(column, column) for column in columns}
    return [field for field in inputs if field not in present]


def mapped_row(row: dict[str, Any], mapping: Mapping[str, str]) -> dict[str, Any]:
    """Returns the row as the pipeline reads it; columns without a field keep their names."""
    mapped = {mapping.get(name, name): value for name, value in row.items()}
    if len(mapped) < len(row):
        refuse_twins(row, mapping)
    return mapped


class RowNames:
    """Renames rows to the fields' names: by the mapping of their job, or without one, each by its
    own names or the mapping that it has."""

    def __init__(self, mapping: Mapping[str, str] | None, inputs: Inputs = ()) -> None:
        self._mapping = mapping
        self._inputs = inputs
        self._known: dict[tuple[str, ...], Mapping[str, str]] = {}

    def __bool__(self) -> bool:
        """Whether any row may change."""
        return self._mapping is None or bool(self._mapping)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        if self._mapping is not None:
            return mapped_row(row, self._mapping)
        chosen = own_names(row) if NAMES in row else None
        if chosen is not None:
            return mapped_row({name: row[name] for name in row if name != NAMES}, chosen)
        mapping = self._mapping_of(tuple(row)) if self._inputs else None
        return mapped_row(row, mapping) if mapping else row

    def _mapping_of(self, names: tuple[str, ...]) -> Mapping[str, str]:
        mapping = self._known.get(names)
        if mapping is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            mapping = self._known[names] = column_mapping(names, self._inputs)
        return mapping


def chosen_names(
    columns: Sequence[str], inputs: Inputs, mapping: Mapping[str, str]
) -> dict[str, str] | None:
    """Returns the mapping, if a record of a standing job does not show it by its names alone."""
    names = {column: field for column, field in mapping.items() if field != column}
    return None if names == column_mapping(columns, inputs) else names


def with_names(row: dict[str, Any], names: Mapping[str, str] | None) -> dict[str, Any]:
    """Returns the record as it came, with the names that were chosen for its columns."""
    if names is None or BAD_ROW in row:
        return row
    try:
        refuse_twins(row, names)
    except TwinColumns as twins:  # a later line of JSON, with other columns than the first ones
        return {**row, BAD_ROW: twins.of_row}
    return {**row, NAMES: names}


def normalised(name: str) -> str:
    folded = unicodedata.normalize("NFKC", name[:_COMPARED_CHARACTERS]).casefold()
    return "".join(character for character in folded if character.isalnum())


def _names_of(field: str, inputs: Inputs) -> list[str]:
    aliases = inputs[field] if isinstance(inputs, Mapping) else ()
    return [field, *aliases]


def _column_for(names: list[str], columns: Sequence[str]) -> str | None:
    for name in names:
        if name in columns:
            return name
    wanted = set(filter(None, map(normalised, names)))
    alike = [column for column in columns if normalised(column) in wanted]
    return alike[0] if len(alike) == 1 else None
