"""Uploaded files and images, and what is read from them."""

from holdfast.features.manifest import Manifest

MANIFEST = Manifest(
    routes=("api",),
)
