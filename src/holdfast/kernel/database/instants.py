"""Parses instants as either database returns them."""

from __future__ import annotations

from datetime import datetime
from typing import Any


def parse_instant(value: Any) -> datetime | None:
    if value is None or isinstance(value, datetime):
        return value
    return datetime.fromisoformat(value)


def seconds_between(earlier: Any, later: Any) -> float:
    start, end = parse_instant(earlier), parse_instant(later)
    assert start is not None and end is not None
    return (end - start).total_seconds()
