"""Linker: entries of datasets matched to Wikidata or another service, and reviewed by people."""

from holdfast.extension import Extension

EXTENSION = Extension(
    name="linker",
    package=__name__,
    help="Entries matched to Wikidata, with review.",
    pipeline="pipeline:Linker",
    options="options:LinkerOptions",
    commands="commands:app",
    web="web:PACK",
    metrics="metrics:declare",
    demo="demo:DEMO",
    consumers="consuming:consumers",
)
