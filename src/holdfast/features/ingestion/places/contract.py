"""Defines what a place where files arrive can do, and what its implementations share."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from holdfast.errors import HoldfastError
from holdfast.stored_files import Written

#: Where files are moved to, below the place itself.
DONE, FAILED = "done", "failed"
#: Written next to a file that was set aside.
REASON = ".reason.txt"
#: Limit of a name, in bytes.
LONGEST_IN_FOLDER, LONGEST_IN_BUCKET = 255, 200
_LONGEST_IDENTITY = 900
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Arrived:
    """A file at a place. `version` changes whenever its content does."""

    name: str
    size: int
    version: str

    @property
    def identity(self) -> str:
        whole = f"{self._storable} {self.size} {self.version}"
        if len(whole) <= _LONGEST_IDENTITY:
            return whole
        return f"sha256 {hashlib.sha256(whole.encode()).hexdigest()}"

    @property
    def shown(self) -> str:
        """The name as databases and folders accept it; of a long one, its beginning and suffix."""
        name = self._storable
        if len(name.encode()) <= _LONGEST_NAME:
            return name
        suffix = PurePosixPath(name).suffix[:20]
        room = _LONGEST_NAME - len(suffix.encode())
        return name.encode()[:room].decode("utf-8", "ignore") + suffix

    @property
    def _storable(self) -> str:
        """The name as text; names of files can be any bytes."""
        return self.name.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()


class PlaceTrouble(HoldfastError):
    """Raised if the place cannot be used now, or not as it is; nothing is wrong with its files."""


class FileTrouble(PlaceTrouble):
    """Raised if one file cannot be read or moved now, or not as it is; others can."""


class Place(Protocol):
    async def arrivals(self) -> list[Arrived]:
        """Lists the files that are there, without those that were moved away."""

    async def fetch(self, file: Arrived, target: Path, max_bytes: int) -> Written:
        """Copies a file to a new local one. It must be as it was listed."""

    async def accept(self, file: Arrived) -> None:
        """Moves the file to `done`; no error if that was done already."""

    async def refuse(self, file: Arrived, reason: str) -> None:
        """Moves the file to `failed`, with the reason beside it."""

    async def clear(self, name: str) -> None:
        """Removes a marker; no error if there is none."""


def is_wanted(name: str) -> bool:
    """Whether the name is of a file to take: not hidden, and not written while a program sends
    one."""
    return not name.startswith((".", "~")) and not name.endswith((".part", ".tmp", ".filepart"))


def numbered(name: str, number: int, longest: int = LONGEST_IN_FOLDER) -> str:
    """Returns prices.csv, prices-2.csv, … for names that are taken."""
    if number == 1:
        return name
    path = PurePosixPath(name)
    return with_ending(path.stem, f"-{number}{path.suffix}", longest)


def with_ending(name: str, ending: str, longest: int = LONGEST_IN_FOLDER) -> str:
    """Returns the name with the ending; of a name that would be too long with it, the beginning."""
    while name and len(f"{name}{ending}".encode("utf-8", "surrogateescape")) > longest:
        name = name[:-1]
    return f"{name}{ending}"
