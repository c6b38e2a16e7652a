"""A toy extension with one of everything that an extension can have. Installed by the tests as the
package `weather_toy`."""

from holdfast.extension import Extension, FlagSpec

EXTENSION = Extension(
    name="weather",
    package=__name__,
    help="Readings of weather stations.",
    pipeline="pipeline:Weather",
    options="options:WeatherOptions",
    commands="commands:app",
    web="web:PACK",
    metrics="metrics:declare",
    demo="demo:DEMO",
    consumers="consumers:CONSUMERS",
    events={"weather.read": ("A station was read.", ("station",))},
    flags=(FlagSpec("weather_radar", "Radar images.", "radar_enabled"),),
    starts_off=True,
)
