"""Decisions of people about items that wait for one."""

from holdfast.features.manifest import Manifest

MANIFEST = Manifest(
    routes=("api",),
)
