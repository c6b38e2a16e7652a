"""Loads named queries: common SQL once, and over it the few that differ by database.

A query may use these words, which each database spells in its own way:

@now              the database's clock, finer than a second
@after(x)         that clock, x seconds later
@each(:list, t)   the values of a list parameter, for `in (…)`
@for_update       lock the rows read
@for_update_of(t) lock the rows read of one table
@skip_locked      lock the rows read, passing over those that others hold
@uuid             a new random id
@seconds_until(x)  how far an instant is ahead of the database's clock
@seconds_since(x)  how far it is behind
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_SQLITE_UUID = (
    "lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2)"
    " || '-a' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))"
)
_SPELLINGS = {
    "postgres": (
        (r"@now\b", "(select clock_timestamp())"),
        (
            r"@after\(([^()]*(?:\([^()]*\))?[^()]*)\)",
            r"(select clock_timestamp() + make_interval(secs => cast(\1 as double precision)))",
        ),
        (r"@each\((:\w+), (\w+)\)", r"select unnest(cast(\1 as \2[]))"),
        (r"@for_update_of\((\w+)\)", r"for update of \1"),
        (r"@for_update\b", "for update"),
        (r"@skip_locked\b", "for update skip locked"),
        (r"@uuid\b", "cast(gen_random_uuid() as text)"),
        (r"@seconds_until\(([^()]*)\)", r"extract(epoch from \1 - clock_timestamp())::float8"),
        (r"@seconds_since\(([^()]*)\)", r"extract(epoch from clock_timestamp() - \1)::float8"),
    ),
    "sqlite": (
        (r"@now\b", "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"),
        (
            r"@after\(([^()]*(?:\([^()]*\))?[^()]*)\)",
            r"strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', \1))",
        ),
        (r"@each\((:\w+), (\w+)\)", r"select value from json_each(\1)"),
        (r"@for_update_of\((\w+)\)", ""),
        (r"@for_update\b", ""),
        (r"@skip_locked\b", ""),
        (r"@uuid\b", _SQLITE_UUID),
        (r"@seconds_until\(([^()]*)\)", r"((julianday(\1) - julianday('now')) * 86400.0)"),
        (r"@seconds_since\(([^()]*)\)", r"((julianday('now') - julianday(\1)) * 86400.0)"),
    ),
}
#: The folders of core's queries. A file that is named after a database is read over the others.
_FOLDERS = tuple(Path(__file__).parents[1] / package / "sql" for package in ("store", "console"))
_OVERLAYS = ("sqlite", "postgres", "meetings_sqlite", "meetings_postgres")
_PARAMETER = re.compile(r"'[^']*'|(?<![:\w]):([a-z_]\w*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Query:
    name: str
    sql: str
    parameters: tuple[str, ...]


@cache
def load_queries(dialect: str) -> dict[str, Query]:
    texts: dict[str, str] = {}
    files = [file for folder in _FOLDERS for file in sorted(folder.glob("*.sql"))]
    for file in files:
        if file.stem not in _OVERLAYS:
            texts |= _read(file)
    for file in files:
        if file.stem in (dialect, f"meetings_{dialect}"):
            texts |= _read(file)
    return {name: compile_query(dialect, sql, name) for name, sql in texts.items()}


@cache
def compile_query(dialect: str, sql: str, name: str = "") -> Query:
    for pattern, spelling in _SPELLINGS[dialect]:
        sql = re.sub(pattern, spelling, sql)
    names: list[str] = []

    def number(match: re.Match[str]) -> str:
        parameter = match.group(1)
        if parameter is None:
            return match.group(0)
        if parameter not in names:
            names.append(parameter)
        return f"${names.index(parameter) + 1}" if dialect == "postgres" else match.group(0)

    return Query(name, _PARAMETER.sub(number, sql), tuple(names))


def _read(file: Path) -> dict[str, str]:
    text = file.read_text()
    queries = {}
    for part in re.split(r"^-- name: ", text, flags=re.MULTILINE)[1:]:
        name, _, body = part.partition("\n")
        lines = [line for line in body.splitlines() if not line.startswith("--")]
        queries[name.strip()] = "\n".join(lines).strip().rstrip(";")
    return queries
