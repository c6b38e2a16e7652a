"""An entry of a dataset: what one mapped row says about the thing that is to be linked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.errors import InputError
from holdfast.model import Json
from holdfast_linker.dates import BadDate, PartialDate, parse_date
from holdfast_linker.names import NAME_CHARACTERS, clean, cut

_PROPERTY_ID = re.compile(r"P[1-9]\d{0,9}")
_ITEM_ID = re.compile(r"(?:https?://www\.wikidata\.org/(?:entity|wiki)/)?(Q[1-9]\d{0,9})")
_VALUE_CHARACTERS = 1_500  # the longest string that Wikidata accepts
_MOST_VALUES = 50  # limit of one cell
_SEVERAL = re.compile(r"[|;\n]")
_ROLES = (
    "id", "name", "aliases", "type", "types", "all_of_type", "dates", "identifiers", "properties"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """What the columns of a dataset say; the names are exactly the table's own."""

    name: str | None = None
    id: str | None = None
    aliases: Sequence[str] = ()
    type: str | None = None
    types: Mapping[str, str] = field(default_factory=dict)  # the item id for a cell's text
    all_of_type: str | None = None  # the type of entries whose cell says nothing else
    dates: Mapping[str, str] = field(default_factory=dict)  # column to property id
    identifiers: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Returns what `parse_mapping` reads."""
        given = {role: getattr(self, role) for role in _ROLES}
        return {
            role: list(value) if isinstance(value, tuple) else value
            for role, value in given.items()
            if value
        }

    @property
    def columns(self) -> list[str]:
        single = [column for column in (self.id, self.name, self.type) if column is not None]
        return [*single, *self.aliases, *self.dates, *self.identifiers, *self.properties]

    @property
    def property_ids(self) -> list[str]:
        return sorted({*self.dates.values(), *self.identifiers.values(), *self.properties.values()})


@dataclass(frozen=True, slots=True)
class Problem:
    """Something about a row that people should know; the row is still used."""

    code: str
    column: str
    detail: str


@dataclass(frozen=True, slots=True)
class GivenValue:
    """One value that the row gives for a property."""

    property_id: str
    text: str
    date: PartialDate | None = None
    doubtful: bool = False  # read by guessing: good for comparing, not for publishing


@dataclass(frozen=True, slots=True)
class Entry:
    key: str
    name: str
    aliases: tuple[str, ...] = ()
    type: str | None = None
    dates: tuple[GivenValue, ...] = ()
    identifiers: tuple[GivenValue, ...] = ()
    properties: tuple[GivenValue, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.aliases) if self.name else self.aliases

    @property
    def searchable(self) -> bool:
        """Whether there is anything to search for."""
        return bool(self.names or self.identifiers)

    @property
    def name_is_whole(self) -> bool:
        return all(problem.code != "NAME_CUT" for problem in self.problems)


def read_mapping(options: Mapping[str, Any], columns: Sequence[str]) -> ColumnMapping:
    """Returns the mapping that a project gives, checked against the table's columns.

    Raises InputError with the column or property id that is wrong, before any row is read."""
    mapping = parse_mapping(options)
    _check_columns(mapping, columns)
    return mapping


def parse_mapping(options: Mapping[str, Any]) -> ColumnMapping:
    """Parses the mapping without a look at the table."""
    unknown = sorted(set(options) - set(_ROLES))
    if unknown:
        raise InputError(
            f"a mapping has no part {unknown[0]!r}", f"It may have: {', '.join(_ROLES)}."
        )
    mapping = ColumnMapping(
        name=_one_column(options, "name"),
        id=_one_column(options, "id"),
        aliases=_column_list(options.get("aliases") or ()),
        type=_one_column(options, "type"),
        types=_item_ids(options.get("types") or {}),
        all_of_type=_one_item(options.get("all_of_type")),
        dates=_property_ids(options.get("dates") or {}),
        identifiers=_property_ids(options.get("identifiers") or {}),
        properties=_property_ids(options.get("properties") or {}),
    )
    if mapping.name is None and not mapping.identifiers:
        raise InputError(
            "the mapping names neither a column with names nor one with identifiers",
            'Give it a name: {"name": "Full name"}.',
        )
    return mapping


def _one_item(given: Any) -> str | None:
    if given is None or given == "":
        return None
    item_id = item_of(given) if isinstance(given, str) else None
    if item_id is None:
        raise InputError(
            f"the type of all entries is {str(given)[:50]!r}, which is not an item id",
            "An item id is a Q and a number, such as Q5 for humans.",
        )
    return item_id


def _one_column(options: Mapping[str, Any], role: str) -> str | None:
    column = options.get(role)
    if column is not None and not isinstance(column, str):
        raise InputError(f"the mapping's {role} must be the name of one column")
    return column


def _column_list(given: Any) -> tuple[str, ...]:
    columns = (given,) if isinstance(given, str) else tuple(given)
    if not all(isinstance(column, str) for column in columns):
        raise InputError("the mapping's aliases must be names of columns")
    return columns


def _pairs(given: Any) -> dict[str, str]:
    if not isinstance(given, Mapping) or not all(
        isinstance(part, str) for pair in given.items() for part in pair
    ):
        raise InputError(
            "dates, identifiers, properties and types map texts to ids",
            'Write it so: {"dates": {"Born": "P569"}}.',
        )
    return dict(given)


def _property_ids(given: Any) -> dict[str, str]:
    pairs = _pairs(given)
    for column, property_id in pairs.items():
        if not is_property_id(property_id):
            raise InputError(
                f"{property_id[:50]!r}, for column {column!r}, is not a property id",
                "A property id is a P and a number, such as P569.",
            )
    return pairs


def _item_ids(given: Any) -> dict[str, str]:
    pairs = _pairs(given)
    for text, item_id in pairs.items():
        if item_of(item_id) is None:
            raise InputError(f"{item_id[:50]!r}, for type {text!r}, is not an item id")
    return {clean(text).casefold(): item_id for text, item_id in pairs.items()}


def _check_columns(mapping: ColumnMapping, columns: Sequence[str]) -> None:
    used = mapping.columns
    for column in used:
        if column not in columns:
            shown = ", ".join(map(repr, columns[:20]))
            raise InputError(
                f"the table has no column {column!r}", f"Its columns are: {shown}. Case counts."
            )
        if used.count(column) > 1:
            raise InputError(f"column {column!r} is mapped twice")


def is_property_id(text: str) -> bool:
    return _PROPERTY_ID.fullmatch(text) is not None


def item_of(text: str) -> str | None:
    """Returns the item id in a text that is one, alone or as a Wikidata address."""
    match = _ITEM_ID.fullmatch(text.strip())
    return match[1] if match else None


def read_entry(row: Json, mapping: ColumnMapping, number: int) -> Entry:
    """Returns the entry of one row. `number` is the row's, and its key if no column has one.

    Nothing in a cell makes this fail: what cannot be used is left out and named in `problems`."""
    problems: list[Problem] = []
    key = _text(row, mapping.id) if mapping.id else ""
    if mapping.id and not key:
        problems.append(Problem("ID_MISSING", mapping.id, "the row has no id; its number is used"))
    name = _name(row, mapping.name, problems)
    aliases = [
        cut(alias) for column in mapping.aliases for alias in _several(row, column, problems)
    ]
    return Entry(
        key=cut(key) or f"row {number}",
        name=name,
        aliases=tuple(dict.fromkeys(alias for alias in aliases if alias != name)),
        type=_type(row, mapping, problems),
        dates=tuple(_dates(row, mapping.dates, problems)),
        identifiers=tuple(_given(row, mapping.identifiers, problems)),
        properties=tuple(_given(row, mapping.properties, problems)),
        problems=tuple(problems),
    )


def _text(row: Json, column: str) -> str:
    value = row.get(column)
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)  # as spreadsheets keep whole numbers
    return clean(str(value))


def _name(row: Json, column: str | None, problems: list[Problem]) -> str:
    if column is None:
        return ""
    name = _text(row, column)
    if not name:
        problems.append(Problem("NAME_MISSING", column, "the row has no name"))
    if len(name) <= NAME_CHARACTERS:
        return name
    detail = f"the name has {len(name):,} characters; the first {NAME_CHARACTERS} are used"
    problems.append(Problem("NAME_CUT", column, detail))
    return cut(name)


def _several(row: Json, column: str, problems: list[Problem]) -> list[str]:
    """Returns the values of a cell: a list, or a text with | ; or line breaks between them."""
    value = row.get(column)
    if value is None:
        return []
    if isinstance(value, list):
        parts = [str(part) for part in value]
    else:
        whole = str(value) if isinstance(value, str) else _text(row, column)
        parts = _SEVERAL.split(whole)
    values = list(dict.fromkeys(text for text in map(clean, parts) if text))
    if len(values) > _MOST_VALUES:
        detail = f"the cell has {len(values):,} values; the first {_MOST_VALUES} are used"
        problems.append(Problem("TOO_MANY_VALUES", column, detail))
    return values[:_MOST_VALUES]


def _type(row: Json, mapping: ColumnMapping, problems: list[Problem]) -> str | None:
    text = _text(row, mapping.type) if mapping.type else ""
    if mapping.type is None or not text:
        return mapping.all_of_type
    item_id = item_of(mapping.types.get(text.casefold(), text))
    if item_id is None:
        detail = f"{text[:50]!r} is not an item id and the mapping gives none for it"
        problems.append(Problem("TYPE_UNKNOWN", mapping.type, detail))
    return item_id


def _dates(row: Json, columns: Mapping[str, str], problems: list[Problem]) -> Iterable[GivenValue]:
    for column, property_id in columns.items():
        text = _text(row, column)
        if not text:
            continue
        try:
            yield GivenValue(property_id, text, parse_date(text))
        except BadDate as error:
            problems.append(Problem(error.code, column, error.detail))
            if error.rest is not None:
                yield GivenValue(property_id, text, error.rest, doubtful=True)


def _given(row: Json, columns: Mapping[str, str], problems: list[Problem]) -> Iterable[GivenValue]:
    for column, property_id in columns.items():
        for text in _several(row, column, problems):
            if len(text) > _VALUE_CHARACTERS:
                detail = f"a value has {len(text):,} characters and is left out"
                problems.append(Problem("VALUE_TOO_LONG", column, detail))
                continue
            yield GivenValue(property_id, text)
