"""Jobs that start at set times."""

from holdfast.features.manifest import Command, Manifest

MANIFEST = Manifest(
    routes=("api",),
    pages=("pages",),
    chores=("chores",),
    commands={
        "schedule": Command("commands", "Start jobs at set times."),
    },
)
