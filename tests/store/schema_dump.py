"""What a database has, object by object, in a form that can be compared and kept in a file.

`python -m tests.store.schema_dump` writes the files of the newest versions. Those of older versions
are what databases in use have: they never change.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
import tempfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg

from holdfast.kernel.database.names import DEFAULT_SCHEMA
from holdfast.kernel.database.schema import Branch
from holdfast.urls import sqlite_file

#: Object -> what it is, in text.
Dump = dict[str, str]

_RELATIONS = """
select c.oid, c.relname, c.reloptions
from   pg_class c join pg_namespace n on n.oid = c.relnamespace
where  n.nspname = $1 and c.relkind = 'r'
"""
_COLUMNS = """
select   a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
         pg_get_expr(d.adbin, d.adrelid), a.attidentity <> '', a.attcompression = 'l',
         nullif(co.collname, 'default')
from     pg_attribute a
         left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
         left join pg_collation co on co.oid = a.attcollation
where    a.attrelid = $1 and a.attnum > 0 and not a.attisdropped
order by a.attname
"""
_CONSTRAINTS = """
select   pg_get_constraintdef(oid)
from     pg_constraint
where    conrelid = $1
order by 1
"""
_OTHERS = """
select 'index ' || indexname, indexdef
from   pg_indexes
where  schemaname = $1
union all
select 'function ' || p.proname,
       pg_get_function_identity_arguments(p.oid) || ', body ' || md5(p.prosrc)
from   pg_proc p join pg_namespace n on n.oid = p.pronamespace
where  n.nspname = $1 and not exists (select 1 from pg_depend d where d.objid = p.oid
                                                                  and d.deptype = 'e')
union all
select 'trigger ' || t.tgname, pg_get_triggerdef(t.oid)
from   pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_namespace n
       on n.oid = c.relnamespace
where  n.nspname = $1 and not t.tgisinternal
union all
select 'sequence ' || sequencename, cast(data_type as text)
from   pg_sequences
where  schemaname = $1 and sequencename not like '%\\_id\\_seq'
"""


def dump(url: str) -> Dump:
    file = sqlite_file(url)
    return asyncio.run(_postgres(url)) if file is None else _sqlite(file)


def text_of(objects: Mapping[str, str]) -> str:
    return "".join(f"{name}: {text}\n" for name, text in sorted(objects.items()))


def snapshot_of(folder: Path, version: int, url: str) -> Path:
    return folder / f"{version}.{'sqlite' if sqlite_file(url) else 'postgres'}.txt"


def _sqlite(file: Path) -> Dump:
    objects: Dump = {}
    with closing(sqlite3.connect(file)) as database:
        rows = database.execute(
            "select type, name, sql from sqlite_schema where sql is not null and name not in"
            " (select name from pragma_table_list where type = 'shadow')"
            " and name not like 'sqlite%'"
        )
        for kind, name, sql in rows.fetchall():
            words = " ".join(sql.split())
            if kind == "table" and not words.lower().startswith("create virtual"):
                words = _sqlite_table(database, name, words)
            objects[f"{kind} {name}"] = words
    return objects


def _sqlite_table(database: sqlite3.Connection, name: str, sql: str) -> str:
    """Columns in order of name: those that were added later are last in the database."""
    tail = sql[sql.rindex(")") + 1 :].strip()
    columns = database.execute(
        f"select name, lower(type), \"notnull\", dflt_value, pk from pragma_table_info('{name}')"
    )
    parts = [_column(*row) for row in sorted(columns)]
    for index, unique, origin in database.execute(
        f"select name, \"unique\", origin from pragma_index_list('{name}')"
    ).fetchall():
        if unique and origin == "u":
            columns = database.execute(f"select name from pragma_index_info('{index}')")
            parts.append(f"unique ({', '.join(row[0] for row in columns)})")
    parts += sorted(re.findall(r"check \(.*?\)|references \w+ \(\w+\)|autoincrement", sql))
    return "\n  ".join([tail, *parts]).strip()


def _column(name: str, kind: str, needed: int, default: str | None, key: int) -> str:
    words = [name, kind, "not null" if needed else "", f"primary key {key}" if key else ""]
    words.append("" if default is None else f"default {default}")
    return " ".join(filter(None, words))


async def _postgres(url: str) -> Dump:
    # So that every name is whole, whatever the role's own path is.
    connection = await asyncpg.connect(url, server_settings={"search_path": ""})
    try:
        schema = DEFAULT_SCHEMA
        objects: Dump = {}
        for oid, name, options in await connection.fetch(_RELATIONS, schema):
            columns = await connection.fetch(_COLUMNS, oid)
            constraints = await connection.fetch(_CONSTRAINTS, oid)
            parts = [_postgres_column(*row) for row in columns]
            parts += [row[0] for row in constraints]
            objects[f"table {name}"] = "\n  ".join([", ".join(options or []), *parts]).strip()
        for name, words in await connection.fetch(_OTHERS, schema):
            objects[name] = words
        return objects
    finally:
        await connection.close()


def _postgres_column(
    name: str, kind: str, needed: bool, default: Any, counts: bool, lz4: bool, collation: Any
) -> str:
    words = [name, kind, "not null" if needed else "", "identity" if counts else ""]
    words += [f"default {default}" if default else "", "lz4" if lz4 else "", collation]
    return " ".join(filter(None, words))


def own_objects(url: str, branch: Branch, core: Branch) -> Dump:
    """Those of a branch, in a database that has core's at most."""
    from holdfast.kernel.database.migrate import CORE, upgrade

    upgrade(url, branches=(core,))
    if branch.name == CORE:
        return dump(url)
    before = dump(url)
    upgrade(url, branches=(core, branch))
    return {name: text for name, text in dump(url).items() if name not in before}


def write_snapshots() -> None:
    from tests.extension.contract import CORE_BRANCH, SNAPSHOTS
    from tests.postgres import PostgresServer

    with PostgresServer() as server, tempfile.TemporaryDirectory() as place:
        for branch, folder in SNAPSHOTS:
            folder.mkdir(exist_ok=True)
            for url in (server.create_database(), f"sqlite:///{place}/{branch.name}.db"):
                file = snapshot_of(folder, branch.newest, url)
                file.write_text(text_of(own_objects(url, branch, CORE_BRANCH)))


if __name__ == "__main__":
    write_snapshots()
