"""How deep JSON may nest. Parsers take more than those who write it again: a record that came in
too deep could be neither shown nor exported, and would take a whole export down with it."""

from __future__ import annotations

from typing import Any

import orjson

DEEPEST = 100


def is_too_deep(text: str) -> bool:
    """Of JSON text. Most is flat, and only one with many brackets has to be looked into."""
    if text.find("{", 1) < 0 and text.find("[", 1) < 0:
        return False
    if text.count("{") + text.count("[") <= DEEPEST:
        return False
    level: list[Any] = [orjson.loads(text)]
    for _ in range(DEEPEST):
        level = [child for each in level for child in _children(each)]
        if not level:
            return False
    return True


def _children(value: Any) -> list[Any]:
    """What nests further."""
    found = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [each for each in found if isinstance(each, dict | list)]
