"""Upgrades, downgrades and describes the schema's versions: the core's and each extension's.

The core and every extension with a `schema` folder are branches, which are upgraded and downgraded
independently. The table `schema_versions` has a row for each, also for an extension that is no
longer installed. Everything that one call changes is one transaction.
"""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
import stat
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import asyncpg

from holdfast.errors import DatabaseGone, SchemaError, UserError
from holdfast.extension import CORE
from holdfast.kernel.database.names import DEFAULT_SCHEMA, VERSIONS, Names, names_in
from holdfast.kernel.database.postgres import mapped_errors
from holdfast.kernel.database.schema import Branch, installed_branches
from holdfast.urls import check_files, sqlite_file

_READ_VERSIONS = f"select branch, version from {VERSIONS}"
_CREATE_VERSIONS = (
    f"create table if not exists {VERSIONS} (branch text primary key, version integer not null)"
)
#: Comes first: a function of somebody else must not stand in for one of PostgreSQL's.
_SAFE_PATH = "set local search_path = pg_catalog, pg_temp"
#: Held by the one process that migrates; the next waits for it and then finds the work done.
_POSTGRES_LOCK = "select pg_catalog.pg_advisory_xact_lock(4601301::bigint)"
_HAS_SCHEMA = "select 1 from pg_namespace where nspname = $1"
_MAY_CREATE = """
select has_schema_privilege($1::text, 'usage') and has_schema_privilege($1::text, 'create')
"""
#: Parts of a URL that name files.
_FILES = frozenset({"sslrootcert", "sslcert", "sslkey", "sslcrl"})


@dataclass(frozen=True, slots=True)
class BranchStatus:
    """`current` is None if the branch has no tables yet; `newest` if it is not installed.

    An extension without tables is not behind: its first use creates them."""

    name: str
    current: int | None
    newest: int | None

    @property
    def is_newer(self) -> bool:
        """Whether a later version of the program or of the extension has written it."""
        return self.newest is not None and (self.current or 0) > self.newest

    @property
    def up_to_date(self) -> bool:
        return self.newest is None or self.current == self.newest or self.is_unused

    @property
    def is_unused(self) -> bool:
        """Whether it is an extension that is installed and has no tables here."""
        return self.name != CORE and self.newest is not None and self.current is None

    @property
    def state(self) -> str:
        if self.newest is None:
            return "not installed; its tables are kept"
        if self.is_unused:
            return "not used here"
        if self.is_newer:
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
        return [branch for branch in self.branches if branch.is_newer]

    @property
    def missing(self) -> str | None:
        """What the program needs and the database does not have, in words."""
        behind = [branch for branch in self.branches if not branch.up_to_date]
        found = ", ".join(f"{branch.name} {branch.current or 'empty'}" for branch in behind)
        present = "empty" if self.is_empty else found
        needed = ", ".join(f"{branch.name} {branch.newest}" for branch in behind)
        return f"is {present}, the program needs {needed}" if behind else None

    def unused(self, names: Iterable[str | None]) -> list[str]:
        """Returns those of the names that are extensions whose tables are not there."""
        wanted = set(names)
        return [each.name for each in self.branches if each.is_unused and each.name in wanted]

    def __getitem__(self, name: str) -> BranchStatus:
        return next(branch for branch in self.branches if branch.name == name)


class _Session(Protocol):
    """A transaction that holds the lock of migrations."""

    dialect: str

    async def run(self, script: str) -> None: ...

    async def fetch(self, sql: str) -> list[Any]: ...


def upgrade(
    url: str,
    name: str | None = None,
    *,
    branches: tuple[Branch, ...] | None = None,
    schema: str = DEFAULT_SCHEMA,
    only_used: bool = False,
    using: Iterable[str] = (),
) -> None:
    """Upgrades all branches or one to the newest version, in one transaction.

    `only_used`: those of extensions only if their tables are there, or in `using`. `schema`: where
    the tables are, see names.py."""
    installed = branches or installed_branches()
    if name is not None:
        _branch(installed, name)

    async def steps(session: _Session) -> None:
        found = compare(await _versions(session), installed)
        _refuse_newer(found)
        if name not in (None, CORE) and not found[CORE].up_to_date:
            raise SchemaError(
                f"core's schema is {found[CORE].current or 'empty'}; {name} needs "
                f"{found[CORE].newest}",
                "Run: holdfast migrate up",
            )
        unused = {each.name for each in found.branches if each.is_unused}
        left_out = unused.difference(using) if only_used else set()
        for branch in installed:
            if name in (None, branch.name) and branch.name not in left_out:
                await _upgrade_branch(session, branch, found[branch.name].current)

    _in_transaction(url, _names_for(schema, installed), steps)


async def _upgrade_branch(session: _Session, branch: Branch, current: int | None) -> None:
    if current == branch.newest:
        return
    with _failures_of(branch.name):
        if current is None:
            await session.run(branch.create(session.dialect))
        else:
            await session.run(branch.functions(session.dialect))
            for number in range(current + 1, branch.newest + 1):
                await session.run(branch.up(number, session.dialect))
        await _set_version(session, branch.name, branch.newest)


def downgrade(
    url: str,
    name: str,
    target: str = "-1",
    *,
    branches: tuple[Branch, ...] | None = None,
    schema: str = DEFAULT_SCHEMA,
) -> None:
    """Downgrades a branch to a version, by a number of steps (`-1`), or to no tables (`base`)."""
    installed = branches or installed_branches()
    branch = _branch(installed, name)
    found = status(url, installed, schema=schema)
    _refuse_newer(found)
    version = _target(branch, found[name].current, target)
    if version == 0 and name == CORE:
        _refuse_core_removal(found)

    async def steps(session: _Session) -> None:
        current = (await _versions(session)).get(name, 0)
        with _failures_of(name):
            for number in range(current, max(version, 1), -1):
                await session.run(branch.down(number, session.dialect))
            if version == 0:
                await session.run(branch.drop(session.dialect))
        await _set_version(session, name, version)

    _in_transaction(url, _names_for(schema, installed), steps)


def status(
    url: str, branches: tuple[Branch, ...] | None = None, *, schema: str = DEFAULT_SCHEMA
) -> SchemaStatus:
    file, names = sqlite_file(url), _names_for(schema, ())
    if file is None:
        versions = asyncio.run(_postgres_versions(url, names))
    else:
        versions = _sqlite_versions(file, names)
    return compare(versions, branches)


def compare(
    versions: Mapping[str, int], branches: tuple[Branch, ...] | None = None
) -> SchemaStatus:
    """Compares what the database has with what this program and its extensions have."""
    newest = {branch.name: branch.newest for branch in branches or installed_branches()}
    names = dict.fromkeys((*newest, *sorted(versions)))
    return SchemaStatus(
        tuple(BranchStatus(name, versions.get(name), newest.get(name)) for name in names)
    )


def require_current(url: str, *, schema: str = DEFAULT_SCHEMA) -> None:
    """Refuses to work on a schema that is older or newer than the program."""
    found = status(url, schema=schema)
    _refuse_newer(found)
    if found.missing:
        raise SchemaError(f"the database's schema {found.missing}", "Run: holdfast migrate up")


def _names_for(schema: str, branches: tuple[Branch, ...]) -> Names:
    return names_in(schema, tuple(branch.folder for branch in branches if branch.name != CORE))


def _branch(branches: tuple[Branch, ...], name: str) -> Branch:
    by_name = {branch.name: branch for branch in branches}
    if name not in by_name:
        raise UserError(
            f"{name!r} is not installed, or has no tables",
            f"Use one of: {', '.join(by_name)}.",
        )
    return by_name[name]


def _target(branch: Branch, current: int | None, target: str) -> int:
    """Returns the version that is meant, 0 for `base`; steps are counted from the current one."""
    if current is None:
        raise SchemaError(f"{branch.name} has no tables in this database")
    if target == "base":
        return 0
    if re.fullmatch(r"-\d{1,3}", target):
        return max(current + int(target), 0)
    earlier = [str(number) for number in range(1, current)]
    if target not in (*earlier, str(current)):
        raise UserError(
            f"{branch.name} is at {current} and cannot go back to {target!r}",
            f"Use one of: {', '.join(('base', *earlier))}.",
        )
    return int(target)


def _refuse_newer(schema: SchemaStatus) -> None:
    for branch in schema.newer:
        raise SchemaError(
            f"the database's schema {branch.name} {branch.current} is newer than this program "
            f"({branch.newest})",
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


@contextmanager
def _failures_of(name: str) -> Iterator[None]:
    """A mistake in a script is not a database that is gone."""
    try:
        yield
    except (sqlite3.Error, asyncpg.PostgresError) as error:
        if isinstance(error, asyncpg.PostgresConnectionError | asyncpg.OperatorInterventionError):
            raise
        reason = str(error).split("\n")[0]
        raise SchemaError(
            f"the migration of {name} failed: {type(error).__name__}: {reason}",
            "Nothing was changed. Update the package that it belongs to, or uninstall it.",
        ) from error


async def _versions(session: _Session) -> dict[str, int]:
    await session.run(_CREATE_VERSIONS)
    return dict(await session.fetch(_READ_VERSIONS))


async def _set_version(session: _Session, name: str, version: int) -> None:
    await session.run(f"delete from {VERSIONS} where branch = '{name}'")
    if version:
        await session.run(f"insert into {VERSIONS} values ('{name}', {version})")


_Steps = Callable[[_Session], Awaitable[None]]


def _in_transaction(url: str, names: Names, steps: _Steps) -> None:
    file = sqlite_file(url)
    running = _in_postgres(url, names, steps) if file is None else _in_sqlite(file, names, steps)
    asyncio.run(running)


class _Postgres:
    dialect = "postgres"

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def run(self, script: str) -> None:
        # asyncpg fails on a script without a statement.
        await self._connection.execute(f"{script}\n;select")

    async def fetch(self, sql: str) -> list[Any]:
        rows: list[Any] = await self._connection.fetch(sql)
        return rows


async def _in_postgres(url: str, names: Names, steps: _Steps) -> None:
    with mapped_errors():
        connection = await _connect(url)
        try:
            await _refuse_other_encodings(connection)
            # Whatever the database's default: what another has just migrated must be seen.
            async with connection.transaction(isolation="read_committed"):
                await connection.execute(_SAFE_PATH)
                await connection.execute(_POSTGRES_LOCK)
                await _enter_schema(connection, names.schema)
                await steps(_Postgres(connection))
        finally:
            await connection.close()


async def _refuse_other_encodings(connection: Any) -> None:
    encoding = await connection.fetchval("show server_encoding")
    if encoding != "UTF8":
        raise UserError(
            f"the database has the encoding {encoding}, which cannot hold every text",
            "Create one that can: createdb --encoding UTF8 --template template0 NAME",
        )


async def _enter_schema(connection: Any, schema: str) -> None:
    """Applies to this transaction only. A schema that is there needs no right to create one."""
    if not await connection.fetchval(_HAS_SCHEMA, schema):
        await _create_schema(connection, schema)
    if not await connection.fetchval(_MAY_CREATE, schema):
        raise UserError(
            f"the role may not create tables in the schema {schema}",
            f"As its owner: grant usage, create on schema {schema} to ROLE.",
        )
    await connection.execute(f"set local search_path = {schema}, pg_temp")


async def _create_schema(connection: Any, schema: str) -> None:
    try:
        await connection.execute(f"create schema {schema}")
    except asyncpg.InsufficientPrivilegeError as error:
        raise UserError(
            f"the role may not create the schema {schema}",
            f"As the owner of the database: create schema {schema} authorization ROLE.",
        ) from error


class _Sqlite:
    dialect = "sqlite"

    def __init__(self, database: sqlite3.Connection, names: Names) -> None:
        self._database = database
        self._names = names

    async def run(self, script: str) -> None:
        for statement in _statements(self._names.in_script(script)):
            self._database.execute(statement)

    async def fetch(self, sql: str) -> list[Any]:
        return self._database.execute(self._names.in_script(sql)).fetchall()


def _statements(script: str) -> Iterator[str]:
    """Yields the statements of a script one by one: `executescript` would commit first."""
    statement = ""
    for part in re.split(r"(?<=;)", script):
        statement += part
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    yield statement


async def _in_sqlite(file: Path, names: Names, steps: _Steps) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        os.close(os.open(file, os.O_CREAT | os.O_WRONLY, stat.S_IRUSR | stat.S_IWUSR))
    with _sqlite_errors(file), closing(_open(file)) as database:
        database.execute("pragma journal_mode = wal")
        database.execute("begin immediate")
        await steps(_Sqlite(database, names))
        database.execute("commit")


def _sqlite_versions(file: Path, names: Names) -> dict[str, int]:
    if not file.exists():
        return {}
    with _sqlite_errors(file), closing(_open(file)) as database:
        try:
            return dict(database.execute(names.in_query("sqlite", _READ_VERSIONS)).fetchall())
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                return {}
            raise


def _open(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(file, timeout=30, isolation_level=None)


@contextmanager
def _sqlite_errors(file: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        raise DatabaseGone(str(error)) from error
    except sqlite3.DatabaseError as error:
        raise UserError(
            f"{file} is not an SQLite database: {error}",
            "Move it away, or point HOLDFAST_DATABASE_URL at another file.",
        ) from error


async def _postgres_versions(url: str, names: Names) -> dict[str, int]:
    with mapped_errors():
        connection = await _connect(url)
        try:
            return dict(await connection.fetch(names.in_query("postgres", _READ_VERSIONS)))
        except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError):
            return {}
        finally:
            await connection.close()


async def _connect(url: str) -> Any:
    check_files(url, _FILES, "HOLDFAST_DATABASE_URL")
    try:
        return await asyncpg.connect(url, timeout=10)
    except asyncpg.UndefinedObjectError as error:
        # What asyncpg does not know itself, it takes for a parameter of the server.
        hint = "Fix the part after the ? in HOLDFAST_DATABASE_URL."
        raise UserError(str(error), hint) from error
