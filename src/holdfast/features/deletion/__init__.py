"""What deletes jobs, files and people's data; retention."""

from holdfast.features.manifest import Command, Manifest

MANIFEST = Manifest(
    routes=("api",),
    pages=("pages",),
    chores=("chores",),
    commands={
        "delete": Command("commands", "Delete jobs, files, exports and people's data."),
        "retention": Command(
            "commands_retention", "Show what the retention policies would delete."
        ),
    },
)
