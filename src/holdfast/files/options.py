"""Options of an operator about files: where they are kept, and which others may be read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from holdfast.settings import setting


@dataclass(frozen=True, slots=True)
class FileOptions:
    bucket: str | None = setting(
        None,
        "Bucket of an S3-compatible service in which uploads, exports and the files of pipelines"
        " are kept.",
        name="FILES_BUCKET",
        kind="bucket",
        shown="none: they are in `files` under `HOLDFAST_DATA_DIR`",
    )
    prefix: str | None = setting(
        None,
        "Where in the bucket they are, such as `holdfast/`.",
        name="FILES_PREFIX",
        kind="prefix",
        shown="none",
    )
    max_upload_bytes: int = setting(
        2048 * 1024**2, "Largest file that can be uploaded over HTTP.", 1, 1024**4
    )
    roots: tuple[Path, ...] = setting(
        (),
        "Folders with files that the API may use for jobs, separated by `:`.",
        name="FILE_ROOTS",
        kind="folders",
        shown="none",
    )
    buckets: str | None = setting(
        None,
        "Buckets, or prefixes in them, whose files the API may use for jobs, separated by commas:"
        " `incoming,archive/2026/`. `{owner}` is the name of the person.",
        name="FILE_BUCKETS",
        kind="bucket places",
        shown="none",
    )
    ftp_passwords: str = setting(
        "",
        "Passwords of FTP servers that adapters read: `ADAPTER=PASSWORD`, separated by spaces.",
        name="INGEST_PASSWORDS",
        secret=True,
        shown="none",
    )


@dataclass(frozen=True, slots=True)
class S3Connection:
    """How a service is reached. Without keys, those of the host are used, as AWS defines it."""

    endpoint: str | None = setting(
        None,
        "Address of the service.",
        name="S3_ENDPOINT",
        kind="endpoint",
        shown="that of Amazon S3",
    )
    region: str | None = setting(
        None, "Region of the buckets.", name="S3_REGION", kind="str", shown="`us-east-1`"
    )
    access_key_id: str | None = setting(
        None,
        "Key to the service.",
        name="S3_ACCESS_KEY_ID",
        kind="header",
        secret=True,
        shown="`AWS_ACCESS_KEY_ID`, or the role of the host",
    )
    secret_access_key: str | None = setting(
        None,
        "The secret that belongs to the key.",
        name="S3_SECRET_ACCESS_KEY",
        kind="header",
        secret=True,
        shown="`AWS_SECRET_ACCESS_KEY`, or the role of the host",
    )
