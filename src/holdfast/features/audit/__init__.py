"""Who did what."""

from holdfast.features.manifest import Manifest

MANIFEST = Manifest(
    routes=("api",),
    pages=("pages",),
)
