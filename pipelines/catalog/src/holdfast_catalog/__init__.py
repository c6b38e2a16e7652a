"""Catalog: prices of the things on a list, or on photographs, from trusted shops."""

from holdfast.extension import Extension

EXTENSION = Extension(
    name="catalog",
    package=__name__,
    help="Price lists of products and photographs of them.",
    pipeline="pipeline:Catalog",
    options="options:CatalogOptions",
    commands="commands:app",
    web="web:PACK",
    demo="demo:DEMO",
)
