"""Upgrades, downgrades and describes the schema's versions: the core's and those of each extension.

The core and every extension with a `migrations` folder are branches of their own, which are
upgraded and downgraded independently. The core's revisions are numbers (`0004`); an extension's
begin with its name (`weather_0002`), and its files with the number (`0002_wind.py`). The database
has one row per branch in `alembic_version`, also for an extension that is no longer installed.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from holdfast.errors import DatabaseGone, SchemaError, UserError
from holdfast.extension import CORE
from holdfast.store.extension_folders import extension_folders
from holdfast.store.postgres import mapped_errors
from holdfast.urls import check_files, sqlite_file

_CORE_VERSIONS = Path(__file__).parent / "migrations" / "versions"
_CURRENT = "select version_num from alembic_version"
_REVISION = re.compile(r"(?:(?P<name>\w+)_)?\d+")
#: Parts of a URL that name files.
_FILES = frozenset({"sslrootcert", "sslcert", "sslkey", "sslcrl"})


@dataclass(frozen=True, slots=True)
class Branch:
    """A history of migrations: core's, or an extension's."""

    name: str
    folder: Path

    @property
    def revisions(self) -> list[str]:
        prefix = "" if self.name == CORE else f"{self.name}_"
        numbers = (path.name.partition("_")[0] for path in self.folder.glob("[0-9]*.py"))
        return [prefix + number for number in sorted(numbers)]


@dataclass(frozen=True, slots=True)
class BranchStatus:
    """`current` is None if the branch has no tables yet; `head` is None if it is not installed."""

    name: str
    current: str | None
    head: str | None
    known: bool

    @property
    def up_to_date(self) -> bool:
        return self.head is None or self.current == self.head

    @property
    def state(self) -> str:
        if self.head is None:
            return "not installed; its tables are kept"
        if not self.known:
            return "newer than this program"
        return "up to date" if self.up_to_date else "run: holdfast migrate up"


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    branches: tuple[BranchStatus, ...]

    @property
    def up_to_date(self) -> bool:
        return all(branch.up_to_date for branch in self.branches)

    @property
    def is_empty(self) -> bool:
        return all(branch.current is None for branch in self.branches)

    @property
    def newer(self) -> list[BranchStatus]:
        """The branches that a later version of the program or of the extension has written."""
        return [branch for branch in self.branches if not branch.known]

    @property
    def missing(self) -> str | None:
        """What the program needs and the database does not have, in words."""
        behind = [branch for branch in self.branches if not branch.up_to_date]
        present = ", ".join(branch.current or _named("empty", branch.name) for branch in behind)
        needed = ", ".join(branch.head or "" for branch in behind)
        return f"is {present}, the program needs {needed}" if behind else None

    def __getitem__(self, name: str) -> BranchStatus:
        return next(branch for branch in self.branches if branch.name == name)


def _named(word: str, name: str) -> str:
    return word if name == CORE else f"{word} ({name})"


def installed_branches() -> tuple[Branch, ...]:
    """Returns the core's branch first: what extensions write refers to its jobs."""
    folders = {name: path / "migrations" for name, path in extension_folders().items()}
    extensions = (Branch(name, path) for name, path in folders.items())
    return (Branch(CORE, _CORE_VERSIONS), *(each for each in extensions if each.revisions))


def upgrade(
    url: str, name: str | None = None, *, branches: tuple[Branch, ...] | None = None
) -> None:
    """Upgrades all branches or one to the newest revision, in one transaction."""
    from holdfast.store import alembic_runner

    branches = branches or installed_branches()
    schema = status(url, branches)
    _refuse_newer(schema)
    if name is not None:
        _branch(branches, name)
        if name != CORE and not schema[CORE].up_to_date:
            raise SchemaError(
                f"core's schema is {schema[CORE].current or 'empty'}; {name} needs "
                f"{schema[CORE].head}",
                "Run: holdfast migrate up",
            )
    chosen = [branch.name for branch in branches if name in (None, branch.name)]
    alembic_runner.upgrade(url, branches, chosen)


def downgrade(
    url: str, name: str, revision: str = "-1", *, branches: tuple[Branch, ...] | None = None
) -> None:
    """Downgrades one branch to one of its revisions: one step back, a number of steps back or
    `base`."""
    from holdfast.store import alembic_runner

    branches = branches or installed_branches()
    schema = status(url, branches)
    _refuse_newer(schema)
    target = _target(_branch(branches, name), schema[name].current, revision)
    if target == "base" and name == CORE:
        _refuse_core_removal(schema)
    alembic_runner.downgrade(url, branches, f"{name}@base" if target == "base" else target)


def status(url: str, branches: tuple[Branch, ...] | None = None) -> SchemaStatus:
    file = sqlite_file(url)
    current = asyncio.run(_postgres_revisions(url)) if file is None else _sqlite_revisions(file)
    return compare(current, branches)


def compare(revisions: Iterable[str], branches: tuple[Branch, ...] | None = None) -> SchemaStatus:
    """Compares what the database has with what this program and its extensions have."""
    current = {_branch_name(revision): revision for revision in sorted(revisions)}
    branches = branches or installed_branches()
    statuses = [_branch_status(branch, current) for branch in branches]
    names = {branch.name for branch in branches}
    uninstalled = [
        BranchStatus(name, revision, None, True)
        for name, revision in current.items()
        if name not in names
    ]
    return SchemaStatus((*statuses, *uninstalled))


def require_current(url: str) -> None:
    """Refuses to work on a schema that is older or newer than the program."""
    schema = status(url)
    _refuse_newer(schema)
    if schema.missing:
        raise SchemaError(f"the database's schema {schema.missing}", "Run: holdfast migrate up")


def _branch_status(branch: Branch, current: Mapping[str, str]) -> BranchStatus:
    revision, revisions = current.get(branch.name), branch.revisions
    known = revision is None or revision in revisions
    return BranchStatus(branch.name, revision, revisions[-1], known)


def _branch_name(revision: str) -> str:
    match = _REVISION.fullmatch(revision)
    return (match["name"] if match else None) or CORE


def _branch(branches: Iterable[Branch], name: str) -> Branch:
    by_name = {branch.name: branch for branch in branches}
    if name not in by_name:
        raise UserError(
            f"{name!r} is not installed, or has no migrations",
            f"Use one of: {', '.join(by_name)}.",
        )
    return by_name[name]


def _target(branch: Branch, current: str | None, revision: str) -> str:
    """Returns the revision that is meant, or `base`; steps are counted from the current one."""
    revisions = branch.revisions
    if current is None:
        raise SchemaError(f"{branch.name} has no tables in this database")
    if revision == "base":
        return revision
    at = revisions.index(current)
    if re.fullmatch(r"-\d{1,3}", revision):
        left = at + int(revision)
        return revisions[left] if left >= 0 else "base"
    if revision not in revisions[: at + 1]:
        earlier = ", ".join(("base", *revisions[:at]))
        raise UserError(
            f"{branch.name} is at {current} and cannot go back to {revision!r}",
            f"Use one of: {earlier}.",
        )
    return revision


def _refuse_newer(schema: SchemaStatus) -> None:
    for branch in schema.newer:
        raise SchemaError(
            f"the database's schema {branch.current} is newer than this program ({branch.head})",
            "Install the version of "
            f"{'Holdfast' if branch.name == CORE else f'the extension {branch.name}'} that made "
            "it, or point HOLDFAST_DATABASE_URL at another database.",
        )


def _refuse_core_removal(schema: SchemaStatus) -> None:
    """Refuses to drop the core's tables while extensions' rows refer to its jobs."""
    left = [branch.name for branch in schema.branches if branch.current and branch.name != CORE]
    if left:
        raise SchemaError(
            f"core's tables cannot be dropped while there are tables of {', '.join(left)}",
            f"First run: holdfast migrate down {left[0]} base",
        )


def _sqlite_revisions(file: Path) -> set[str]:
    if not file.exists():
        return set()
    try:
        with closing(sqlite3.connect(file, timeout=30)) as database:
            return {str(row[0]) for row in database.execute(_CURRENT)}
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return set()
        raise DatabaseGone(str(error)) from error
    except sqlite3.DatabaseError as error:
        raise UserError(
            f"{file} is not an SQLite database: {error}",
            "Move it away, or point HOLDFAST_DATABASE_URL at another file.",
        ) from error


async def _postgres_revisions(url: str) -> set[str]:
    check_files(url, _FILES, "HOLDFAST_DATABASE_URL")
    with mapped_errors():
        try:
            connection = await asyncpg.connect(url, timeout=10)
        except asyncpg.UndefinedObjectError as error:
            # asyncpg passes what it does not know to the server as a parameter.
            hint = "Fix the part after the ? in HOLDFAST_DATABASE_URL."
            raise UserError(str(error), hint) from error
        try:
            return {str(row[0]) for row in await connection.fetch(_CURRENT)}
        except asyncpg.UndefinedTableError:
            return set()
        finally:
            await connection.close()
