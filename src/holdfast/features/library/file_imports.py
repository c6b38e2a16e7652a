"""Imports files that are already on the server or in a bucket: it checks whether they are open to
the API and copies them, so that a job does not depend on what becomes of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from holdfast.errors import NotAllowed, NotThere
from holdfast.files import FileStore
from holdfast.files.contract import BLOCK_BYTES, Meter, checked_key, stream_to

_FILE = "file"


@dataclass(frozen=True, slots=True)
class Received:
    """A file that arrived completely, in a temporary folder of this host."""

    name: str
    path: Path
    size: int
    sha256: str

    def under_its_name(self) -> Received:
        """Renames the copy to the file's name, because messages about its content name the file."""
        path = self.path.with_name(self.name)
        self.path.rename(path)
        return replace(self, path=path)


@dataclass(frozen=True, slots=True)
class ImportBucket:
    """A bucket, or a prefix in it, whose objects may be imported.

    `{owner}` in the prefix is the name of the person who asks."""

    bucket: str
    prefix: str = ""

    def has(self, bucket: str, key: str, owner: str) -> bool:
        return bucket == self.bucket and key.startswith(self.prefix.replace("{owner}", owner))


class FileImports:
    def __init__(
        self,
        roots: Sequence[Path],
        places: Sequence[ImportBucket],
        open_bucket: Callable[[str], FileStore],
        max_bytes: int,
    ) -> None:
        self._roots = roots
        self._places = places
        self._open_bucket = open_bucket
        self._max_bytes = max_bytes

    def copy_path(self, path: str, folder: Path) -> Received:
        """Copies a file; links are followed before their target is checked."""
        place = self._under_a_root(path)
        meter, copy = Meter(self._max_bytes), folder / _FILE
        with place.open("rb", buffering=0) as source, copy.open("xb") as target:
            # It may have become a link to another place in between.
            now = self._under_a_root(path)
            if not os.path.samestat(os.fstat(source.fileno()), now.stat()):
                raise _not_open(path)
            while block := source.read(BLOCK_BYTES):
                meter.add(block)
                target.write(block)
        return Received(place.name, copy, meter.size, meter.sha256)

    async def copy_object(self, place: str, owner: str, folder: Path) -> Received:
        bucket, _, key = place.partition("/")
        if not any(allowed.has(bucket, key, owner) for allowed in self._places):
            raise NotAllowed(
                f"{place!r} is not in a bucket that is open to the API",
                "HOLDFAST_FILE_BUCKETS lists the buckets. Write it as BUCKET/KEY.",
            )
        store = self._open_bucket(bucket)
        info = await store.find(checked_key(key))
        if info is None:
            raise NotThere(f"there is no object {key!r} in the bucket {bucket}")
        written = await stream_to(
            store, key, folder / _FILE, max_bytes=self._max_bytes, sha256=None
        )
        return Received(PurePosixPath(key).name, folder / _FILE, written.size, written.sha256)

    def _under_a_root(self, path: str) -> Path:
        if "\0" in path:
            raise _not_open(path)
        for root in self._roots:
            # The name may be too long, a link circular, a folder unreadable.
            with suppress(OSError, RuntimeError):
                place = (root / path).resolve()
                if place.is_relative_to(root.resolve()) and place.is_file():
                    return place
        raise _not_open(path)


def bucket_places(text: str) -> list[ImportBucket]:
    """Parses the places of HOLDFAST_FILE_BUCKETS. A prefix ends with a whole name."""
    places = []
    for place in filter(None, text.split(",")):
        bucket, _, prefix = place.strip().partition("/")
        prefix = prefix.strip("/")
        places.append(ImportBucket(bucket, f"{prefix}/" if prefix else ""))
    return places


def _not_open(path: str) -> NotAllowed:
    return NotAllowed(
        f"{path!r} is not a file in a folder that is open to the API",
        "HOLDFAST_FILE_ROOTS lists the folders.",
    )
