"""Kill switches as people turn them on and off, by command, API and page."""

from __future__ import annotations

import re

from holdfast.errors import UserError
from holdfast.kernel.jobs.control import Control

#: Also shown in the OpenAPI document. A source may have any name: "s3/incoming" too.
SCOPE_PATTERN = r"^(all|pipeline:[^\x00-\x1f\x7f]+|source:[^\x00-\x1f\x7f]+)$"
LONGEST_SCOPE = 300
_SCOPE = re.compile(SCOPE_PATTERN.removesuffix("$") + r"\Z")


async def switch(control: Control, scope: str, on: bool, reason: str) -> bool:
    """Turns the switch of a scope; False if it was already so."""
    if not _SCOPE.match(scope) or len(scope) > LONGEST_SCOPE:
        raise UserError(f"{scope[:50]!r} is not a scope", "Use all, pipeline:NAME or source:NAME.")
    return await control.switch(scope, on, reason)
