"""The one line in which people say which items they mean: `status:ERROR code:TIMEOUT`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from holdfast.api.items import statuses_of
from holdfast.errors import UserError
from holdfast.model import ItemStatus
from holdfast.store.item_pages import ItemFilter

_WORDS = "status:ERROR code:TIMEOUT since:2026-11-15 until:2026-11-15T09:30 row:500"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which items, as said in `text`; `row` is the first to be shown."""

    text: str
    items: ItemFilter
    row: int | None = None

    @property
    def statuses(self) -> str:
        return ",".join(self.items.statuses)

    def with_status(self, status: str) -> str:
        """The line with this status instead of another; without one, any."""
        kept = [word for word in self.text.split() if not word.lower().startswith("status:")]
        return " ".join([*([f"status:{status}"] if status else []), *kept])


def wanted(text: str) -> Wanted:
    filter, row = ItemFilter(), None
    for word in text.split():
        name, colon, value = word.partition(":")
        if not colon and name.upper() in set(ItemStatus):
            name, value = "status", name
        if name == "row":
            row = _row(value)
        else:
            filter = _narrowed(filter, name.lower(), value, word)
    if row is not None and not filter.is_empty:
        raise UserError("row: stands alone", "Rows are numbered in the list without a filter.")
    return Wanted(" ".join(text.split()), filter, row)


def _narrowed(filter: ItemFilter, name: str, value: str, word: str) -> ItemFilter:
    if name == "status" and value:
        return replace(filter, statuses=(*filter.statuses, *statuses_of(value)))
    if name == "code" and value.replace("_", "").replace(".", "").replace("-", "").isalnum():
        return replace(filter, code=value.upper())
    if name == "since":
        return replace(filter, since=_instant(value))
    if name == "until":
        return replace(filter, until=_instant(value))
    raise UserError(f"{word!r} is not understood", f"Words of the filter: {_WORDS}")


def _instant(value: str) -> datetime:
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        raise UserError(f"{value!r} is no time", "E.g. 2026-11-15 or 2026-11-15T09:30.") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _row(value: str) -> int:
    if not (value.isascii() and value.isdecimal() and 0 < int(value) < 2**53):
        raise UserError(f"{value!r} is no row", "E.g. row:500.")
    return int(value)
