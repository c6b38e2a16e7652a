from __future__ import annotations

from dataclasses import dataclass

from holdfast.settings import setting


@dataclass(frozen=True, slots=True)
class WeatherOptions:
    stations: int = setting(2, "Number of stations.", 1, 100, alias="STATION_COUNT")
    token: str = setting("", "Sent to the stations.", kind="header", secret=True, shown="none")
    radar_enabled: bool = setting(True, "Off hides radar images, as the flag does.")
