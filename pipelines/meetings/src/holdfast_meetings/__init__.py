"""Meetings: every page of every agenda and minutes of a municipality, from Datasette sites."""

from holdfast.extension import Extension

EXTENSION = Extension(
    name="meetings",
    package=__name__,
    help="Agendas and minutes of municipalities.",
    pipeline="pipeline:Meetings",
    options="options:MeetingsOptions",
    commands="commands:app",
    web="web:PACK",
    demo="demo:DEMO",
)
