"""Builds indexes on PostgreSQL beside running processes, which cannot be done in a transaction.

A revision names them in `CONCURRENTLY` (name -> table and columns). After each upgrade, those that
are missing or were interrupted are built. On SQLite, revisions create them themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import asyncpg

_LOCK = 4601302
_VALID = """
select c.relname
from   pg_index i join pg_class c on c.oid = i.indexrelid
where  i.indisvalid and c.relname = any ($1)
"""
_POLL_SECONDS = 0.2


async def build_indexes(url: str, indexes: Mapping[str, str]) -> None:
    connection = await asyncpg.connect(url)
    try:
        # Tried, not waited for: an index is built only when no older statement runs, and waiting
        # would be one.
        while not await connection.fetchval("select pg_try_advisory_lock($1)", _LOCK):  # noqa: ASYNC110
            await asyncio.sleep(_POLL_SECONDS)
        valid = {row[0] for row in await connection.fetch(_VALID, list(indexes))}
        for name, columns in indexes.items():
            if name not in valid:
                await connection.execute(f"drop index concurrently if exists {name}")
                await connection.execute(f"create index concurrently {name} on {columns}")
    finally:
        await connection.close()
