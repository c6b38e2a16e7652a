"""File stores as a process would open them."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.files.bucket import BucketStore
from holdfast.files.options import S3Connection


def bucket_of(settings: Mapping[str, str], **changes: str) -> BucketStore:
    """The bucket of these settings. `changes` are fields of the connection, or the bucket."""
    connection = {
        "endpoint": settings["HOLDFAST_S3_ENDPOINT"],
        "region": settings["HOLDFAST_S3_REGION"],
        "access_key_id": settings["HOLDFAST_S3_ACCESS_KEY_ID"],
        "secret_access_key": settings["HOLDFAST_S3_SECRET_ACCESS_KEY"],
        **changes,
    }
    bucket = connection.pop("bucket", settings["HOLDFAST_FILES_BUCKET"])
    return BucketStore(S3Connection(**connection), bucket, settings["HOLDFAST_FILES_PREFIX"])
