"""Runs Alembic on its own connection.

It is imported only when the schema changes, because loading it takes longer than most commands need
to answer."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, inspect, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from holdfast.errors import DatabaseGone, HoldfastError, PipelineError, SchemaError
from holdfast.store.concurrent_indexes import build_indexes
from holdfast.store.migrate import Branch
from holdfast.urls import sqlite_file

_DELETE = text("delete from alembic_version where version_num = :revision")
_INSERT = text("insert into alembic_version (version_num) values (:revision)")


def upgrade(url: str, branches: Sequence[Branch], names: Iterable[str]) -> None:
    upgraded = list(names)
    indexes: dict[str, str] = {}

    def action(connection: Connection) -> None:
        with _installed_only(connection, branches):
            with _failures_of("an extension"):
                scripts = _scripts(branches)
            for name in upgraded:
                with _failures_of(name):
                    _run(connection, partial(scripts._upgrade_revs, f"{name}@head"))
                    indexes.update(_indexes_of(scripts, name))

    _on_connection(url, action)
    if indexes and sqlite_file(url) is None:
        with _failures_of("an index"):
            asyncio.run(build_indexes(url, indexes))


def _run(connection: Connection, steps: Callable[[Any], Any]) -> None:
    """Does what `alembic.command` does, without loading every revision again for each branch."""
    options = {"fn": lambda revision, _: steps(revision), "render_as_batch": True}
    context = MigrationContext.configure(connection, opts=options)
    with Operations.context(context), context.begin_transaction():
        context.run_migrations()


def _indexes_of(scripts: ScriptDirectory, branch: str) -> dict[str, str]:
    """Returns the indexes that the branch's revisions leave to be built outside a transaction."""
    indexes: dict[str, str] = {}
    for script in scripts.iterate_revisions(f"{branch}@head", "base"):
        indexes.update(getattr(script.module, "CONCURRENTLY", {}))
    return indexes


def downgrade(url: str, branches: Sequence[Branch], target: str) -> None:
    def action(connection: Connection) -> None:
        with _installed_only(connection, branches):
            with _failures_of("an extension"):
                scripts = _scripts(branches)
            with _failures_of(target):
                _run(connection, partial(scripts._downgrade_revs, target))

    _on_connection(url, action)


@contextmanager
def _failures_of(what: str) -> Iterator[None]:
    """Raises a failed migration as such, so that it is not taken for an unreachable database."""
    try:
        yield
    except Exception as error:
        gone = isinstance(error, DBAPIError) and error.connection_invalidated
        if gone or isinstance(error, HoldfastError | OSError):
            raise
        reason = str(error).split("\n")[0]
        raise SchemaError(
            f"the migration of {what} failed: {type(error).__name__}: {reason}",
            "Nothing was changed. Update the package that it belongs to, or uninstall it.",
        ) from error


def _scripts(branches: Sequence[Branch]) -> ScriptDirectory:
    scripts = ScriptDirectory(
        str(Path(__file__).parent / "migrations"),
        version_locations=[str(branch.folder) for branch in branches],
    )
    _check_names(scripts, branches)
    return scripts


def _check_names(scripts: ScriptDirectory, branches: Sequence[Branch]) -> None:
    """Checks that file names match revisions: `status` reads revisions from the names without
    importing."""
    expected = {revision for branch in branches for revision in branch.revisions}
    for script in scripts.walk_revisions():
        if script.revision not in expected:
            raise PipelineError(
                f"{script.path}: the revision {script.revision!r} does not fit the file's name",
                "In NNNN_words.py of the extension NAME it is NAME_NNNN.",
            )


@contextmanager
def _installed_only(connection: Connection, branches: Sequence[Branch]) -> Iterator[None]:
    """Hides the revisions of extensions that are not installed for the length of the transaction,
    because Alembic cannot work with revisions whose files it does not have."""
    known = {revision for branch in branches for revision in branch.revisions}
    left = [revision for revision in _revisions(connection) if revision not in known]
    for revision in left:
        connection.execute(_DELETE, {"revision": revision})
    yield
    for revision in left:
        connection.execute(_INSERT, {"revision": revision})


def _revisions(connection: Connection) -> list[str]:
    if not inspect(connection).has_table("alembic_version"):
        return []
    rows = connection.execute(text("select version_num from alembic_version"))
    return [str(row[0]) for row in rows]


def _on_connection(url: str, action: Callable[[Connection], None]) -> None:
    try:
        file = sqlite_file(url)
        if file is not None:
            _on_sqlite(file, action)
        else:
            asyncio.run(_on_postgres(url, action))
    except (OSError, DBAPIError) as error:
        raise DatabaseGone(str(error).split("\n")[0]) from error


def _on_sqlite(path: Path, action: Callable[[Connection], None]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    _create_private(path)
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": 30})
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql("pragma journal_mode = wal")
            connection.commit()
            # Two processes that migrate at once: the second waits here and then finds it done.
            connection.exec_driver_sql("begin immediate")
            action(connection)
            connection.commit()
    finally:
        engine.dispose()


def _create_private(path: Path) -> None:
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, stat.S_IRUSR | stat.S_IWUSR))


async def _on_postgres(url: str, action: Callable[[Connection], None]) -> None:
    # The URL's options, such as `sslmode`, are for asyncpg to read: SQLAlchemy knows others.
    engine = create_async_engine(
        "postgresql+asyncpg://", async_creator=lambda: asyncpg.connect(url)
    )
    try:
        async with engine.begin() as connection:
            await connection.exec_driver_sql("select pg_advisory_xact_lock(4601301)")
            await connection.run_sync(action)
    finally:
        await engine.dispose()
