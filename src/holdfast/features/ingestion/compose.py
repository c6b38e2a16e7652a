"""Opens the place of an adapter, with what the settings allow and know."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from holdfast.cli.composition import open_bucket
from holdfast.configuration import Settings
from holdfast.errors import NotAllowed
from holdfast.features.ingestion.adapters import Adapter, AdapterKind
from holdfast.features.ingestion.places.contract import Place
from holdfast.features.ingestion.places.folder import FolderPlace
from holdfast.features.library.file_imports import bucket_places

_PORTS = {"ftp": 21, "ftps": 21}


def open_place(settings: Settings, adapter: Adapter) -> Place:
    match adapter.kind:
        case AdapterKind.FOLDER:
            return FolderPlace(Path(adapter.address), settings.files.roots)
        case AdapterKind.S3:
            return _bucket(settings, adapter)
        case AdapterKind.FTP:
            return _ftp(settings, adapter)


def _bucket(settings: Settings, adapter: Adapter) -> Place:
    from holdfast.features.ingestion.places.bucket import BucketPlace

    bucket, _, prefix = adapter.address.partition("/")
    key = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
    places = bucket_places(settings.files.buckets or "")
    if not any(place.has(bucket, key, adapter.owner) for place in places):
        raise NotAllowed(
            f"{adapter.address!r} is not in a bucket that adapters may read",
            "HOLDFAST_FILE_BUCKETS lists the buckets.",
        )
    return BucketPlace(open_bucket(settings, bucket, key))


def _ftp(settings: Settings, adapter: Adapter) -> Place:
    from holdfast.features.ingestion.places.ftp import FtpPlace, FtpServer

    parts = urlsplit(adapter.address)
    passwords = dict(pair.partition("=")[::2] for pair in settings.files.ftp_passwords.split())
    return FtpPlace(
        FtpServer(
            host=parts.hostname or "",
            port=parts.port or _PORTS[parts.scheme],
            user=unquote(parts.username or "anonymous"),
            folder=unquote(parts.path.strip("/")),
            tls=parts.scheme == "ftps",
            password=passwords.get(adapter.name, ""),
        )
    )
