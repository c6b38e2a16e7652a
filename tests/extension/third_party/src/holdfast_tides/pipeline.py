from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast import Context, Pipeline, Settled, Tx
from holdfast_tides.options import TidesOptions


class Tides(Pipeline):
    """The high tide of each harbour of a list."""

    name = "tides"
    columns = ("harbour", "metres")

    def __init__(self, options: TidesOptions) -> None:
        self._metres = options.metres
        super().__init__()

    async def process(self, row: dict[str, Any], ctx: Context) -> dict[str, Any]:
        return {"harbour": row["harbour"], "metres": self._metres}

    async def save(self, tx: Tx, settled: Sequence[Settled]) -> None:
        rows = sorted((each.result["harbour"], each.result["metres"]) for each in settled)
        await tx.take_many("tides_add_heights", rows)
