"""Checks scopes of kill switches before one is switched."""

from __future__ import annotations

import re

from holdfast.errors import UserError

#: Also shown in the OpenAPI document.
SCOPE_PATTERN = r"^(all|pipeline:[^\x00/]+|source:[^\x00/]+)$"
LONGEST_SCOPE = 300
_SCOPE = re.compile(SCOPE_PATTERN.removesuffix("$") + r"\Z")


def check_scope(scope: str) -> None:
    if not _SCOPE.match(scope) or len(scope) > LONGEST_SCOPE:
        raise UserError(f"{scope[:50]!r} is not a scope", "Use all, pipeline:NAME or source:NAME.")
