"""Records as the items that they become: JSON of a size and depth that every process can read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

import orjson

from holdfast_client.columns import BAD_ROW, NAMES, require_chosen_names
from holdfast_client.errors import UserError
from holdfast_client.json_depth import DEEPEST, is_too_deep
from holdfast_client.keys import NewItem
from holdfast_client.storable import storable_key

#: The name of a field whose value is a record's key, or a function that finds it.
RowKey = str | Callable[[Any], str | None]
#: As the setting HOLDFAST_MAX_INPUT_BYTES, which applications do not read.
MAX_INPUT_BYTES = 10 * 1024 * 1024


def new_items(
    rows: Iterable[Any], key: RowKey | None = None, max_bytes: int = MAX_INPUT_BYTES
) -> list[NewItem]:
    """Returns rows as items. `key` names the field whose value is a record's key, or finds it."""
    if key is None:
        return [new_item(row, None, max_bytes) for row in rows]
    key_of = partial(field_key, name=key) if isinstance(key, str) else key
    return [new_item(row, _text_key(key_of(row)), max_bytes) for row in rows]


def _text_key(key: Any) -> str | None:
    if key is not None and not isinstance(key, str):
        raise UserError(f"the key of a record is not text: {key!r:.80}")
    return key


def new_item(row: Any, key: str | None = None, max_bytes: int = MAX_INPUT_BYTES) -> NewItem:
    """Returns a row as an item: JSON of a size and depth that every process can read."""
    if type(row) is not dict:
        if not isinstance(row, Mapping):
            raise UserError(f"a record is not an object: {row!r:.80}")
        row = dict(row)
    if NAMES in row and BAD_ROW not in row:
        require_chosen_names(row)
    try:
        encoded = orjson.dumps(row)
    except (TypeError, ValueError) as error:
        raise UserError(f"a record is not JSON: {error}") from error
    if len(encoded) > max_bytes:
        raise UserError(f"a record has {len(encoded):,} bytes; at most {max_bytes:,} are accepted")
    text = encoded.decode()
    if is_too_deep(text):
        raise UserError(f"a record nests deeper than {DEEPEST} levels")
    if key is None:
        return NewItem(text)
    return NewItem(text, storable_key(key), content_hash(encoded))


def require_time(run_at: datetime | None) -> None:
    """Refuses a time that no database stores."""
    if run_at is None:
        return
    if not isinstance(run_at, datetime) or run_at.tzinfo is None:
        raise UserError(
            "run_at is not a datetime with a time zone",
            "For example: 2026-03-01T06:00:00Z, or datetime.now(UTC).",
        )
    try:
        run_at.astimezone(UTC)
    except OverflowError:
        raise UserError("the time to run at is not between the years 1 and 9999") from None


def field_key(row: Any, name: str) -> str:
    """Returns the value of one field as the record's key."""
    value = row.get(name) if isinstance(row, Mapping) else None
    if value is None:
        raise UserError(f"a record has no {name!r}, which is the key")
    return str(value)


def content_hash(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:32]
