"""The first page: what runs, what waits, what failed."""

from holdfast.features.manifest import Manifest

MANIFEST = Manifest(
    routes=("api",),
    pages=("pages",),
)
