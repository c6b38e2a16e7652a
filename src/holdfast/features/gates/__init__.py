"""Gates as people see and change them."""

from holdfast.features.manifest import Manifest

MANIFEST = Manifest(
    routes=("api",),
    pages=("pages",),
)
