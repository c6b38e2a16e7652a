from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from holdfast import Context, Page, Pipeline, Record, Settled, Tx

from .options import WeatherOptions


class Weather(Pipeline):
    """One reading of every station."""

    name = "weather"
    columns = ("station", "degrees")

    def __init__(self, options: WeatherOptions) -> None:
        self.settings = options
        super().__init__()

    async def discover(self, source: str, cursor: Any, ctx: Context) -> AsyncIterator[Page]:
        records = [Record({"station": n}) for n in range(1, self.settings.stations + 1)]
        yield Page(records, end=True)

    async def process(self, row: dict[str, Any], ctx: Context) -> dict[str, Any]:
        if self.metrics is not None:
            self.metrics.readings.labels(str(row["station"])).inc()
        ctx.log.info("weather.read", station=row["station"])
        return {"station": row["station"], "degrees": 20 + row["station"]}

    async def save(self, tx: Tx, settled: Sequence[Settled]) -> None:
        rows = [(each.result["station"], each.result["degrees"]) for each in settled]
        await tx.take_many("weather_add_readings", sorted(rows))
