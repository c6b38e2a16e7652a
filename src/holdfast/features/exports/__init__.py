"""Results as files."""

from holdfast.features.manifest import Command, Manifest

MANIFEST = Manifest(
    routes=("api",),
    pages=("pages",),
    commands={
        "export": Command("commands", "Write the results of a job to a file."),
    },
)
