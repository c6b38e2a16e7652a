"""Adapters: files that arrive in folders, on FTP servers and in buckets."""

from holdfast.features.manifest import Command, Manifest

MANIFEST = Manifest(
    routes=("api",),
    pages=("pages",),
    commands={
        "ingest": Command("commands", "Take files from folders, FTP servers and buckets."),
    },
)
