"""Limits how deep JSON may be nested.

Parsers accept more than writers do: a record that is nested too deeply could be neither shown nor
exported, and would break a whole export."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

DEEPEST = 100


def is_too_deep(text: str) -> bool:
    """Whether JSON text nests too deep. Most is flat; only text with many brackets is parsed."""
    if text.find("{", 1) < 0 and text.find("[", 1) < 0:
        return False
    if text.count("{") + text.count("[") <= DEEPEST:
        return False
    return nests_deeper_than(orjson.loads(text), DEEPEST)


def nests_deeper_than(value: Any, levels: int) -> bool:
    level = _containers([value])
    for _ in range(levels):
        level = _containers([child for container in level for child in _children(container)])
        if not level:
            return False
    return True


def _children(container: Any) -> Iterable[Any]:
    return container.values() if isinstance(container, dict) else container


def _containers(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if isinstance(value, dict | list)]
