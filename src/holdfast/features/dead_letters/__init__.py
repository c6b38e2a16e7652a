"""Replay or drop items and messages that were set aside."""

from holdfast.features.manifest import Command, Manifest

MANIFEST = Manifest(
    routes=("api",),
    pages=("pages",),
    commands={
        "dead": Command("commands", "Replay or drop items and messages that were set aside."),
    },
)
