"""Filters of items as people write them, and as exports and operations store them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from holdfast.errors import UserError
from holdfast.features.items.items import ItemFilter
from holdfast.features.items.value_search import Value
from holdfast.model import ItemStatus
from holdfast.rulings import RulingKind

NO_FILTER = ItemFilter()


def statuses_of(text: str) -> tuple[ItemStatus, ...]:
    """Parses statuses such as `ERROR,not-found`."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    names = {word: word.upper().replace("-", "_") for word in words}
    for word, name in names.items():
        if name not in ItemStatus.__members__:
            raise UserError(f"there is no status {word!r}", f"Statuses: {', '.join(ItemStatus)}.")
    return tuple(ItemStatus(name) for name in dict.fromkeys(names.values()))


def rulings_of(text: str) -> tuple[RulingKind, ...]:
    words = [word.strip() for word in text.lower().split(",") if word.strip()]
    known = [kind for kind in RulingKind if kind is not RulingKind.REVOKE]
    if words == ["any"]:
        return tuple(known)
    unknown = [word for word in words if word not in known]
    if unknown:
        raise UserError(f"there is no ruling {unknown[0]!r}", f"Rulings: {', '.join(known)}, any.")
    return tuple(RulingKind(word) for word in dict.fromkeys(words))


def in_utc(value: datetime | None) -> datetime | None:
    """Returns the time in UTC; a time without a zone is taken as UTC."""
    if value is None or value.tzinfo is None:
        return value and value.replace(tzinfo=UTC)
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise UserError(f"{value.isoformat()} is out of range") from None


def stored_filter(filter: ItemFilter, values: Sequence[Value]) -> dict[str, Any]:
    """Returns what a filter says besides statuses, as JSON."""
    return {
        "code": filter.code,
        "since": None if filter.since is None else filter.since.isoformat(),
        "until": None if filter.until is None else filter.until.isoformat(),
        "values": [[value.column, value.pattern] for value in values],
        "rulings": [str(kind) for kind in filter.rulings],
    }
