"""The schema's versions: up, down and where the database stands."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from holdfast.database_url import check_files, sqlite_file
from holdfast.errors import DatabaseGone, SchemaError, UserError
from holdfast.store.postgres import mapped_errors

_VERSIONS = Path(__file__).parent / "migrations" / "versions"
_CURRENT = "select version_num from alembic_version"
#: Parts of a URL that name files.
_FILES = frozenset({"sslrootcert", "sslcert", "sslkey", "sslcrl"})


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    current: str | None
    head: str
    known: bool

    @property
    def up_to_date(self) -> bool:
        return self.current == self.head


def upgrade(url: str, revision: str = "head") -> None:
    from holdfast.store import alembic_runner

    _refuse_newer(status(url))
    alembic_runner.upgrade(url, revision)


def downgrade(url: str, revision: str) -> None:
    from holdfast.store import alembic_runner

    _refuse_newer(status(url))
    alembic_runner.downgrade(url, revision)


def status(url: str) -> SchemaStatus:
    file = sqlite_file(url)
    current = asyncio.run(_postgres_version(url)) if file is None else _sqlite_version(file)
    revisions = _revisions()
    return SchemaStatus(current, revisions[-1], current is None or current in revisions)


def newest_revision() -> str:
    """The schema that this program needs."""
    return _revisions()[-1]


def _revisions() -> list[str]:
    return sorted(path.name.partition("_")[0] for path in _VERSIONS.glob("[0-9]*.py"))


def require_current(url: str) -> None:
    """Refuses to work on a schema that is older or newer than the program."""
    found = status(url)
    _refuse_newer(found)
    if not found.up_to_date:
        raise SchemaError(
            f"the database's schema is {found.current or 'empty'}, the program needs {found.head}",
            "Run: holdfast migrate up",
        )


def _refuse_newer(found: SchemaStatus) -> None:
    if not found.known:
        raise SchemaError(
            f"the database's schema {found.current} is newer than this program ({found.head})",
            "Install the version of Holdfast that made it, or point HOLDFAST_DATABASE_URL "
            "at another database.",
        )


def _sqlite_version(file: Path) -> str | None:
    if not file.exists():
        return None
    try:
        with closing(sqlite3.connect(file, timeout=30)) as database:
            row = database.execute(_CURRENT).fetchone()
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return None
        raise DatabaseGone(str(error)) from error
    except sqlite3.DatabaseError as error:
        raise UserError(
            f"{file} is not an SQLite database: {error}",
            "Move it away, or point HOLDFAST_DATABASE_URL at another file.",
        ) from error
    return str(row[0]) if row else None


async def _postgres_version(url: str) -> str | None:
    check_files(url, _FILES, "HOLDFAST_DATABASE_URL")
    with mapped_errors():
        try:
            connection = await asyncpg.connect(url, timeout=10)
        except asyncpg.UndefinedObjectError as error:
            # What asyncpg does not know itself, it takes for a parameter of the server.
            hint = "Mend the part after the ? in HOLDFAST_DATABASE_URL."
            raise UserError(str(error), hint) from error
        try:
            version = await connection.fetchval(_CURRENT)
            return None if version is None else str(version)
        except asyncpg.UndefinedTableError:
            return None
        finally:
            await connection.close()
