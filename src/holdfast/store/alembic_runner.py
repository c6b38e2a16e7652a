"""Runs Alembic on a connection of its own. Imported only when the schema changes: it takes longer
to load than most commands take to answer."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable
from pathlib import Path

import asyncpg
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from holdfast.database_url import sqlite_file
from holdfast.errors import DatabaseGone


def upgrade(url: str, revision: str) -> None:
    _on_connection(url, lambda connection: command.upgrade(_config(connection), revision))


def downgrade(url: str, revision: str) -> None:
    _on_connection(url, lambda connection: command.downgrade(_config(connection), revision))


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    return config


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
