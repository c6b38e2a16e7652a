"""The settings of the file store, as one group."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.settings.declared import setting


@dataclass(frozen=True, slots=True)
class FileSettings:
    files_bucket: str | None = setting(
        None,
        "Bucket of an S3-compatible service in which uploads, exports and the files of pipelines"
        " are kept.",
        kind="bucket",
        shown="none: they are in `files` under `HOLDFAST_DATA_DIR`",
    )
    files_prefix: str | None = setting(
        None, "Where in the bucket they are, such as `holdfast/`.", kind="prefix", shown="none"
    )
    s3_endpoint: str | None = setting(
        None, "Address of the service.", kind="endpoint", shown="that of Amazon S3"
    )
    s3_region: str = setting("", "Region of the buckets.", shown="`us-east-1`")
    s3_access_key_id: str = setting(
        "",
        "Key to the service.",
        kind="header",
        secret=True,
        shown="`AWS_ACCESS_KEY_ID`, or the role of the host",
    )
    s3_secret_access_key: str = setting(
        "",
        "The secret that belongs to the key.",
        kind="header",
        secret=True,
        shown="`AWS_SECRET_ACCESS_KEY`, or the role of the host",
    )
    file_buckets: str | None = setting(
        None,
        "Buckets, or prefixes in them, whose files the API may use for jobs, separated by commas:"
        " `incoming,archive/2026/`. `{owner}` is the name of the person.",
        kind="bucket places",
        shown="none",
    )
    ingest_passwords: str = setting(
        "",
        "Passwords of FTP servers that adapters read: `ADAPTER=PASSWORD`, separated by spaces.",
        secret=True,
        shown="none",
    )
