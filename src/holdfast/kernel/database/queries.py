"""Loads named queries: core's folders and one folder of each extension.

A folder holds files of queries that read the same on both databases, and `sqlite.sql` and
`postgres.sql` with those that differ. An extension has `common.sql`, `sqlite.sql` and
`postgres.sql`, each where it needs one, and every name in them begins with its own.

Tables are named as their `schema/` folder names them; where they are is put in here (names.py). SQL
that is given as text, by a pipeline's `save`, is run as it is.

A part that several queries share is written once, as `-- fragment: name`, and used as `@name`.

A query may use these words, which each database spells in its own way:

@now              the database's clock, finer than a second
@after(x)         that clock, x seconds later
@each(:list, t)   the values of a list parameter, for `in (...)`
@one_of(:list, t)  ... as a filter, `seq @one_of(:seqs, bigint)`: never a join, whatever the planner
                  knows of the table
@rows(a t, b t)   the rows of a batch (`take_many`), as a table with these columns and types:
                  numbers, texts without NUL, and null. A row is given by these names, or as a
                  sequence in this order
@for_update       lock the rows read
@for_update_of(t) lock the rows read of one table
@skip_locked      lock the rows read, passing over those that others hold
@uuid             a new random id
@seconds_until(x)  how far an instant is ahead of the database's clock
@seconds_since(x)  how far it is behind
@instant(x)        a text such as 2026-01-31T12:00:00.000Z as an instant

And these on a search table s, see holdfast/text_search.py:

@words(x)              what the search table keeps of a text
@replaced_words        ends the insert: words of a row that is there already are replaced
@has_words(s, :q)      whether a row has the words of a query
@snippet(s, x, :q)     where in the text x they are, marked
@highlight(s, x, :q)   the text x with all of them marked
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

from holdfast.errors import PipelineError
from holdfast.kernel.database.names import DEFAULT_SCHEMA, Names, names_in
from holdfast_client.names import with_whole_functions
from holdfast_client.queries import FOLDER as ADDING_FOLDER
from holdfast_client.queries import numbered

_SQLITE_UUID = (
    "lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2)"
    " || '-a' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))"
)
_Spelling = str | Callable[[re.Match[str]], str]
_SPELLINGS: dict[str, tuple[tuple[str, _Spelling], ...]] = {
    "postgres": (
        (r"@now\b", "(select clock_timestamp())"),
        (
            r"@after\(([^()]*(?:\([^()]*\))?[^()]*)\)",
            r"(select clock_timestamp() + make_interval(secs => cast(\1 as double precision)))",
        ),
        (r"@each\((:\w+), (\w+)\)", r"select unnest(cast(\1 as \2[]))"),
        (r"@one_of\((:\w+), (\w+)\)", r"= any(cast(\1 as \2[]))"),
        (
            r"@rows\(([^()]*)\)( \w+)",
            lambda m: f"unnest({_arrays(m[1])}){m[2]} ({', '.join(_columns(m[1]))})",
        ),
        (r"@for_update_of\((\w+)\)", r"for update of \1"),
        (r"@for_update\b", "for update"),
        (r"@skip_locked\b", "for update skip locked"),
        (r"@uuid\b", "cast(gen_random_uuid() as text)"),
        (r"@seconds_until\(([^()]*)\)", r"extract(epoch from \1 - clock_timestamp())::float8"),
        (r"@seconds_since\(([^()]*)\)", r"extract(epoch from clock_timestamp() - \1)::float8"),
        (r"@instant\(([^()]*)\)", r"cast(cast(\1 as text) as timestamptz)"),
        # A word vector has at most 1,048,575 bytes, and one character makes up to eight of them
        # (rare letters, hyphenated); beyond that, all indexing would fail.
        (r"@words\(([\w.]+)\)", r"to_tsvector('english', left(\1, 100000))"),
        (r"@replaced_words\b", "on conflict (rowid) do update set words = excluded.words"),
        (
            r"@has_words\((\w+), (:\w+)\)",
            r"\1.words @@ websearch_to_tsquery('english', cast(\2 as text))",
        ),
        (
            r"@snippet\(\w+, ([\w.]+), (:\w+)\)",
            r"ts_headline('english', left(\1, 20000), websearch_to_tsquery('english', \2), "
            r"'StartSel=' || chr(2) || ', StopSel=' || chr(3)"
            r" || ', MaxWords=30, MinWords=10, MaxFragments=2')",
        ),
        (
            r"@highlight\(\w+, ([\w.]+), (:\w+)\)",
            r"ts_headline('english', left(\1, 300000), websearch_to_tsquery('english', \2), "
            r"'HighlightAll=true, StartSel=' || chr(2) || ', StopSel=' || chr(3))",
        ),
    ),
    "sqlite": (
        (r"@now\b", "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"),
        (
            r"@after\(([^()]*(?:\([^()]*\))?[^()]*)\)",
            r"strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', \1))",
        ),
        (r"@each\((:\w+), (\w+)\)", r"select value from json_each(\1)"),
        (r"@one_of\((:\w+), (\w+)\)", r"in (select value from json_each(\1))"),
        (
            r"@rows\(([^()]*)\)",
            lambda m: f"(select {_json_columns(m[1])} from json_each(:batch))",
        ),
        (r"@for_update_of\((\w+)\)", ""),
        (r"@for_update\b", ""),
        (r"@skip_locked\b", ""),
        (r"@uuid\b", _SQLITE_UUID),
        (r"@seconds_until\(([^()]*)\)", r"((julianday(\1) - julianday('now')) * 86400.0)"),
        (r"@seconds_since\(([^()]*)\)", r"((julianday('now') - julianday(\1)) * 86400.0)"),
        (r"@instant\(([^()]*)\)", r"\1"),
        (r"@words\(([\w.]+)\)", r"\1"),
        (r"@replaced_words\b", ""),  # FTS5 cannot replace words, and has one writer at a time
        (r"@has_words\((\w+), (:\w+)\)", r"\1 match \2"),
        (
            r"@snippet\((\w+), [\w.]+, :\w+\)",
            r"snippet(\1, 0, char(2), char(3), ' … ', 30)",
        ),
        (r"@highlight\((\w+), [\w.]+, :\w+\)", r"highlight(\1, 0, char(2), char(3))"),
    ),
}
_HEADING = re.compile(r"^-- (name|fragment): (\w+) *\n", re.MULTILINE)
_WORD = re.compile(r"@(\w+)")
_ROWS = re.compile(r"@rows\(([^()]*)\)")


@dataclass(frozen=True, slots=True)
class Query:
    """`columns`: of the rows of a batch, which it takes together (`@rows`)."""

    name: str
    sql: str
    parameters: tuple[str, ...]
    columns: tuple[str, ...] = ()

    def in_order(
        self, rows: Sequence[Sequence[Any]] | Sequence[Mapping[str, Any]]
    ) -> Sequence[Sequence[Any]]:
        """Returns the rows of a batch as sequences in the order of `@rows`."""
        if not isinstance(rows[0], Mapping):
            return cast("Sequence[Sequence[Any]]", rows)
        named, names = cast("Sequence[Mapping[str, Any]]", rows), set(self.columns)
        for row in named:
            if row.keys() != names:
                raise PipelineError(
                    f"a row for the query {self.name} has other names than its @rows: "
                    f"{', '.join(sorted(row.keys() ^ names))}",
                    "Give a value for each of its columns, and no others.",
                )
        return [[row[column] for column in self.columns] for row in named]


@dataclass(frozen=True, slots=True)
class SqlFolder:
    """A folder of queries; `owner`: the extension whose queries these are, None for the core's."""

    path: Path
    owner: str | None = None


_PACKAGE = Path(__file__).parents[2]
#: The kernel has its queries in one folder, each feature in its own; those that add records come
#: with the client.
CORE_FOLDERS = (
    SqlFolder(_PACKAGE / "kernel" / "sql"),
    *(SqlFolder(path) for path in sorted(_PACKAGE.glob("features/*/sql"))),
    SqlFolder(ADDING_FOLDER),
)


def extension_sql(packages: Mapping[str, Path]) -> tuple[SqlFolder, ...]:
    """Returns the SQL folders of extensions, given by name with the folder of each package."""
    folders = (SqlFolder(path / "sql", name) for name, path in packages.items())
    return tuple(folder for folder in folders if folder.path.is_dir())


@cache
def names_of(folders: tuple[SqlFolder, ...], schema: str) -> Names:
    """Returns the names of core's tables and of those of the extensions with these queries."""
    owned = (folder.path.parent / "schema" for folder in folders if folder.owner is not None)
    return names_in(schema, tuple(owned))


@cache
def load_queries(
    dialect: str, folders: tuple[SqlFolder, ...], schema: str = DEFAULT_SCHEMA
) -> Mapping[str, Query]:
    names = names_of(folders, schema)
    texts: dict[str, str] = {}
    fragments = {name: sql for folder in folders for name, sql in _fragments(folder)}
    for folder in folders:
        for name, (file, sql) in _folder_queries(folder, dialect, fragments).items():
            if name in texts:
                raise PipelineError(
                    f"{file}: there is already a query named {name}",
                    "Each query has a name of its own.",
                )
            texts[name] = sql
    queries = {
        name: compile_query(dialect, names.in_query(dialect, sql), name)
        for name, sql in texts.items()
    }
    if dialect == "postgres":  # what was spelled out calls functions too
        for name, query in queries.items():
            queries[name] = replace(query, sql=with_whole_functions(query.sql))
    return queries


def _folder_queries(
    folder: SqlFolder, dialect: str, fragments: Mapping[str, str]
) -> dict[str, tuple[Path, str]]:
    """Returns the file and text of each query by name; a query of the dialect replaces the common
    one."""
    queries: dict[str, tuple[Path, str]] = {}
    common = [path for path in sorted(folder.path.glob("*.sql")) if path.stem not in _SPELLINGS]
    for file in common:
        for name, sql in _read(file, folder.owner, fragments):
            if name in queries:
                raise PipelineError(f"{file}: the query {name} is defined twice")
            queries[name] = (file, sql)
    overlay = folder.path / f"{dialect}.sql"
    if overlay.exists():
        queries |= {name: (overlay, sql) for name, sql in _read(overlay, folder.owner, fragments)}
    return queries


@cache
def compile_query(dialect: str, sql: str, name: str = "") -> Query:
    declared = _ROWS.search(sql)
    columns = tuple(_columns(declared[1])) if declared else ()
    for pattern, spelling in _SPELLINGS[dialect]:
        sql = re.sub(pattern, spelling, sql)
    return Query(name, *numbered(dialect, sql), columns)


def _columns(declared: str) -> list[str]:
    return [column.split()[0] for column in declared.split(",")]


def _json_columns(declared: str) -> str:
    return ", ".join(f"value ->> {at} as {name}" for at, name in enumerate(_columns(declared)))


def _arrays(declared: str) -> str:
    types = [column.split(maxsplit=1)[1] for column in declared.split(",")]
    return ", ".join(f"${number}::{kind.strip()}[]" for number, kind in enumerate(types, 1))


def _fragments(folder: SqlFolder) -> Iterator[tuple[str, str]]:
    for file in sorted(folder.path.glob("*.sql")):
        for kind, name, sql in _parts(file):
            if kind == "fragment":
                _check_prefix(file, folder.owner, kind, name)
                yield name, sql


def _read(file: Path, owner: str | None, fragments: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for kind, name, sql in _parts(file):
        if kind == "fragment":
            continue
        _check_prefix(file, owner, "query", name)
        yield name, _WORD.sub(lambda word: fragments.get(word[1], word[0]), sql)


def _check_prefix(file: Path, owner: str | None, kind: str, name: str) -> None:
    if owner is not None and not name.startswith(f"{owner}_"):
        raise PipelineError(
            f"{file}: the {kind} {name} does not begin with {owner}_",
            f"Name it {owner}_{name}: the names of an extension's queries begin with its own.",
        )


def _parts(file: Path) -> Iterator[tuple[str, str, str]]:
    before, *pieces = _HEADING.split(file.read_text())
    if _statement(before):
        raise PipelineError(
            f"{file}: there is a query without a name",
            "Write a line `-- name: NAME` above it.",
        )
    for kind, name, body in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        yield kind, name, _statement(body)


def _statement(text: str) -> str:
    """Returns the text without its comments and the semicolon at the end."""
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    return "\n".join(lines).strip().rstrip(";")
