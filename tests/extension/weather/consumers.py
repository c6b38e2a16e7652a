from __future__ import annotations

from holdfast import Record, Tx
from holdfast.consumers import Binding, Incoming, QueueConsumer


async def readings(tx: Tx, message: Incoming) -> list[Record]:
    return [Record({"station": station}) for station in message.json()]


CONSUMERS = [
    QueueConsumer("weather.readings", readings, [Binding("stations", "readings.#", "topic")])
]
