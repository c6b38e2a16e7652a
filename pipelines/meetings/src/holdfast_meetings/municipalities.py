"""Municipalities: what is known about each, and the checks of new values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import orjson

from holdfast.errors import UserError
from holdfast.pipeline import Tx
from holdfast_meetings.options import MeetingsOptions

_SUBDOMAIN = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))*")
_LONGEST = 1000


@dataclass(frozen=True, slots=True)
class Municipality:
    id: int
    subdomain: str
    name: str
    state: str | None
    country: str | None
    kind: str | None
    url: str
    zone: str
    pages: int | None
    last_updated: str | None
    latitude: float | None
    longitude: float | None
    popup_data: str | None
    created_at: Any = None
    updated_at: Any = None


FIELDS = tuple(field.name for field in fields(Municipality) if field.name not in ("id",))[:-2]
_NUMBERS: Mapping[str, type] = {"pages": int, "latitude": float, "longitude": float}


async def write_municipality(
    tx: Tx, known: Municipality | None, values: Mapping[str, Any]
) -> Municipality:
    rows = await tx.take(
        "meetings_add_municipality" if known is None else "meetings_change_municipality", values
    )
    municipality_id = rows[0][0]
    return Municipality(municipality_id, **values)


def checked(
    given: Mapping[str, Any], known: Municipality | None, options: MeetingsOptions
) -> dict[str, Any]:
    """Returns the values to write: given values, else the known ones, each checked."""
    values: dict[str, Any] = dict.fromkeys(FIELDS)
    if known is not None:
        values = {name: getattr(known, name) for name in FIELDS}
    values |= {name: _value(name, given[name]) for name in FIELDS if name in given}
    subdomain = values["subdomain"]
    if not isinstance(subdomain, str) or not _is_subdomain(subdomain):
        raise UserError(
            f"{subdomain!r} is not a subdomain",
            "Use lower-case letters, digits, hyphens and dots, as in alameda.ca. The address of "
            "the site is its URL.",
        )
    values["name"] = values["name"] or subdomain
    values["url"] = _url(values["url"] or options.url.format(subdomain=subdomain))
    values["zone"] = _zone(values["zone"] or "UTC")
    return values


def _is_subdomain(text: str) -> bool:
    return len(text) <= 190 and bool(_SUBDOMAIN.fullmatch(text))


def _value(name: str, value: Any) -> Any:
    if value is None or value == "":
        return None
    if name == "popup_data":
        return _json_text(value)
    if name in _NUMBERS:
        return _number(name, value)
    if not isinstance(value, str) or "\0" in value or len(value) > _LONGEST:
        raise UserError(f"{name} must be text of at most {_LONGEST} characters")
    return value


def _json_text(value: Any) -> str:
    """Returns the value as JSON text, which it may be already."""
    if isinstance(value, str):
        with suppress(orjson.JSONDecodeError):
            orjson.loads(value)
            return value
    try:
        return orjson.dumps(value).decode()
    except TypeError as error:
        raise UserError(f"popup_data cannot be stored: {error}") from None


def _number(name: str, value: Any) -> Any:
    try:
        if isinstance(value, bool):
            raise ValueError
        number = _NUMBERS[name](value)
    except (TypeError, ValueError, OverflowError):
        raise UserError(f"{name} must be a number") from None
    if not -(2**53) < number < 2**53 or (name == "pages" and number < 0):
        raise UserError(f"{name} is out of bounds")
    return number


def _url(url: str) -> str:
    if re.match(r"https?://[^/?#]*@", url):
        raise UserError(
            "the URL of a site must not contain a user or password, because every user can read it",
            "Set HOLDFAST_MEETINGS_API_KEY or HOLDFAST_MEETINGS_SERVICE_SECRET.",
        )
    if not re.fullmatch(r"https?://[^\s/?#]+(/[^\s?#]*)?", url):
        raise UserError(f"{url!r} is not the URL of a site", "It begins with https:// or http://.")
    return url.rstrip("/")


def _zone(zone: str) -> str:
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # such as the name of a folder of zones
        raise UserError(
            f"there is no time zone {zone!r}", "Use a name such as America/Los_Angeles."
        ) from None
    return zone
