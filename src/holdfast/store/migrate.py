"""The schema's versions: up, down and where the database stands."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from holdfast.database_url import sqlite_file
from holdfast.errors import DatabaseGone, SchemaError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    current: str | None
    head: str
    known: bool

    @property
    def up_to_date(self) -> bool:
        return self.current == self.head


def upgrade(url: str, revision: str = "head") -> None:
    _refuse_newer(status(url))
    _on_connection(url, lambda connection: command.upgrade(_config(connection), revision))


def downgrade(url: str, revision: str) -> None:
    _refuse_newer(status(url))
    _on_connection(url, lambda connection: command.downgrade(_config(connection), revision))


def status(url: str) -> SchemaStatus:
    file = sqlite_file(url)
    if file is not None and not file.exists():
        return _status_of(None)
    return _status_of(_on_connection(url, _current))


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


def _status_of(current: str | None) -> SchemaStatus:
    scripts = ScriptDirectory.from_config(_config(None))
    revisions = {script.revision for script in scripts.walk_revisions()}
    head = scripts.get_current_head()
    assert head is not None
    return SchemaStatus(current, head, current is None or current in revisions)


def _current(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _config(connection: Connection | None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    return config


def _on_connection(url: str, action: Callable[[Connection], T]) -> T:
    try:
        file = sqlite_file(url)
        if file is not None:
            return _on_sqlite(file, action)
        return asyncio.run(_on_postgres(url, action))
    except (OSError, DBAPIError) as error:
        raise DatabaseGone(str(error).split("\n")[0]) from error


def _on_sqlite(path: Path, action: Callable[[Connection], T]) -> T:
    path.parent.mkdir(parents=True, exist_ok=True)
    _create_private(path)
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": 30})
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql("pragma journal_mode = wal")
            connection.commit()
            # Two processes that migrate at once: the second waits here and then finds it done.
            connection.exec_driver_sql("begin immediate")
            result = action(connection)
            connection.commit()
            return result
    finally:
        engine.dispose()


def _create_private(path: Path) -> None:
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, stat.S_IRUSR | stat.S_IWUSR))


async def _on_postgres(url: str, action: Callable[[Connection], T]) -> T:
    engine = create_async_engine("postgresql+asyncpg" + url[url.index("://") :])
    try:
        async with engine.begin() as connection:
            await connection.exec_driver_sql("select pg_advisory_xact_lock(4601301)")
            return await connection.run_sync(action)
    finally:
        await engine.dispose()
