"""The names of all tables, read from the `schema/` folders; see `holdfast_client.names`."""

from __future__ import annotations

import re
from pathlib import Path

from holdfast_client.names import DEFAULT_SCHEMA as DEFAULT_SCHEMA
from holdfast_client.names import Names as Names
from holdfast_client.names import require_schema

#: The table of the runner, which creates all others.
VERSIONS = "schema_versions"

_CORE = Path(__file__).parent / "schema"
_NAMED = re.compile(
    r"\b(?:create|drop|alter) (?:or replace )?(?:unique )?"
    r"(table|virtual table|sequence|function|index|trigger) (?:if (?:not )?exists )?(\w+)",
    re.IGNORECASE,
)


def names_in(schema: str, folders: tuple[Path, ...]) -> Names:
    """The names that core's schema and those in the folders have or had."""
    texts = (file.read_text() for folder in (_CORE, *folders) for file in folder.rglob("*.sql"))
    found = [pair for text in texts for pair in _NAMED.findall(text)]

    def of(*kinds: str) -> frozenset[str]:
        return frozenset(name for kind, name in found if kind.lower() in kinds)

    return Names(
        require_schema(schema),
        tables=of("table", "virtual table") | {VERSIONS},
        searches=of("virtual table"),
        functions=of("function"),
        sequences=of("sequence"),
        others=of("index", "trigger"),
    )
