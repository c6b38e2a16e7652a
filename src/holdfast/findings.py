"""What an examination of the set-up found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    what: str
    ok: bool
    text: str
    mend: str | None = None
