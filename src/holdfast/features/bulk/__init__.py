"""Changes of many items at once, as operations that people can watch."""

from holdfast.features.manifest import Manifest

MANIFEST = Manifest(
    routes=("api_job", "api"),
    pages=("pages_job", "pages"),
)
