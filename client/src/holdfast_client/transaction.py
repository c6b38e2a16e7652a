"""What adding records needs of a transaction: the application's, or one of Holdfast's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Transaction(Protocol):
    """Runs named queries. Rows are read by position."""

    writes_together: bool  # whether one statement can write several tables

    async def scan(self, query: str, params: Mapping[str, Any]) -> Sequence[Sequence[Any]]: ...

    async def take(self, query: str, params: Mapping[str, Any]) -> list[Any]:
        """Writes and returns rows."""
        ...

    async def run(self, query: str, params: Mapping[str, Any]) -> None: ...
