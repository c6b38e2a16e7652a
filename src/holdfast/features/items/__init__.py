"""Items as lists, a grid and pages; searched, filtered, added."""

from holdfast.features.manifest import Command, Manifest

MANIFEST = Manifest(
    routes=("api", "api_new_items", "api_pending"),
    pages=("pages_grid", "pages", "pages_pending"),
    commands={
        "items": Command("commands", "List the items of a job, or one with its history."),
    },
)
