"""High tides of harbours."""

from holdfast.extension import Extension

EXTENSION = Extension(
    name="tides",
    package=__name__,
    help="High tides of harbours.",
    pipeline="pipeline:Tides",
    options="options:TidesOptions",
    commands="commands:app",
    web="web:PACK",
)
