"""Where Holdfast's tables are, in a database that may belong to an application.

On PostgreSQL everything is in its own schema, `holdfast.jobs`. On SQLite, which has no schemas,
names begin with it: `holdfast_jobs`. Our SQL says `jobs`, and the whole name is put in when it is
loaded: no connection needs a `search_path`, and an application's own table `jobs` is never meant.

Only names that are given are known, and they are looked for only where a statement
names a table, a sequence or a function; `jobs` as a column or an alias stays as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from holdfast_client.errors import UserError

DEFAULT_SCHEMA = "holdfast"
ACCEPTED_SCHEMA = "up to 30 lower-case letters, digits and `_`; not `public`, nor a word of SQL"
_SCHEMA = re.compile(r"(?!pg_|sqlite|public$)[a-z][a-z0-9_]{0,29}")
#: Words that PostgreSQL takes for something else, and the schema of its own tables.
_RESERVED = frozenset(
    """
    all analyse analyze and any array as asc asymmetric authorization binary both case cast
    check collate collation column concurrently constraint create cross current_catalog
    current_date current_role current_schema current_time current_timestamp current_user
    default deferrable desc distinct do else end except false fetch for foreign freeze from
    full grant group having ilike in information_schema initially inner intersect into is
    isnull join lateral leading left like limit localtime localtimestamp natural not notnull
    null offset on only or order outer overlaps placing primary references returning right
    select session_user similar some symmetric system_user table tablesample then to trailing
    true union unique user using variadic verbose when where window with
    """.split()  # noqa: SIM905
)
#: PostgreSQL's functions that our SQL calls. One in `public` whose arguments fit better would be
#: called instead of `unnest(anyarray)`, and anyone who may create functions there could write it.
_POSTGRES_FUNCTIONS = (
    "array_agg|array_to_tsvector|avg|chr|clock_timestamp|count|current_database|gen_random_uuid"
    "|generate_series|hashtextextended|json_array_elements|lag|left|length|lower|make_interval|max"
    "|min|nextval|pg_advisory_xact_lock|pg_backend_pid|pg_notify|pg_terminate_backend"
    "|pg_try_advisory_xact_lock|replace|set_config|string_to_array|substr|sum|to_tsvector"
    "|ts_headline|ts_rank|websearch_to_tsquery"
)
#: `unnest` of several arrays is syntax, and always PostgreSQL's own: it has no whole name.
_UNNEST_ONE = r"unnest(?=\([^(),]*(?:\([^()]*\)[^(),]*)*\))"
_CALL = re.compile(rf"(?<![\w.])({_POSTGRES_FUNCTIONS}|{_UNNEST_ONE})\(")
#: Where a statement reads or writes a table.
_TABLE = re.compile(
    r"\b((?:from|join|into|update|using|analyze|truncate|FROM|JOIN|INTO|UPDATE|USING)\s+)"
    r"(\w+)\b(?![.(])"
)
#: `jobs.` before a column. What stands in texts and comments is none.
_QUALIFIER = re.compile(r"'[^']*'|--[^\n]*|\b(\w+)\.(?=\w)")
#: Where a script creates, changes or drops something.
_DEFINED = re.compile(
    r"\b((?:(?:table|index|trigger)(?: if(?: not)? exists)?|on|references|rename to)\s+)"
    r"(\w+)\b(?!\.)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Names:
    """`tables`, `searches` (SQLite's virtual tables), `functions`, `sequences`: the names that are
    known. `others` are those of indexes and triggers, which no query names."""

    schema: str
    tables: frozenset[str]
    searches: frozenset[str]
    functions: frozenset[str]
    sequences: frozenset[str]
    others: frozenset[str]

    def schema_of(self, table: str) -> str | None:
        """Returns None if the table is not ours."""
        return self.schema if table in self.tables else None

    def whole(self, dialect: str, table: str) -> str:
        if table not in self.tables:
            return table
        return f"{self.schema}.{table}" if dialect == "postgres" else f"{self.schema}_{table}"

    def in_query(self, dialect: str, sql: str) -> str:
        return self._in_postgres(sql) if dialect == "postgres" else self._in_sqlite(sql)

    def in_script(self, sql: str) -> str:
        """Serves SQLite. Scripts for PostgreSQL run in a transaction with a `search_path`."""
        defined = self.tables | self.others

        def whole(match: re.Match[str]) -> str:
            return f"{match[1]}{self.schema}_{match[2]}" if match[2] in defined else match[0]

        return _DEFINED.sub(whole, self._in_sqlite(sql))

    def _in_postgres(self, sql: str) -> str:
        def whole(match: re.Match[str]) -> str:
            return match[1] + self.whole("postgres", match[2])

        sql = with_whole_functions(_TABLE.sub(whole, sql))
        for name in self.functions:
            if f"{name}(" in sql:
                sql = re.sub(rf"\b{name}\(", f"{self.schema}.{name}(", sql)
        for name in self.sequences:
            sql = sql.replace(f"'{name}'", f"'{self.schema}.{name}'")
        return sql

    def _in_sqlite(self, sql: str) -> str:
        # Everywhere: a virtual table is also the name of a column, `heights_search match :words`.
        for name in self.searches:
            if name in sql:
                sql = re.sub(rf"\b{name}\b", f"{self.schema}_{name}", sql)
        named = set()

        def table(match: re.Match[str]) -> str:
            if match[2] in self.tables:
                named.add(match[2])
            return match[1] + self.whole("sqlite", match[2])

        def qualifier(match: re.Match[str]) -> str:
            return f"{self.schema}_{match[0]}" if match[1] in named else match[0]

        sql = _TABLE.sub(table, sql)
        if any(f"{name}." in sql for name in named):
            sql = _QUALIFIER.sub(qualifier, sql)
        return sql


def with_whole_functions(sql: str) -> str:
    return _CALL.sub(r"pg_catalog.\1(", sql)


def names_for_adding(schema: str) -> Names:
    """Returns the names that the client's queries use."""
    return Names(
        require_schema(schema),
        tables=frozenset(("counters", "items", "jobs", "keys", "outcomes", "ranges")),
        searches=frozenset(),
        functions=frozenset(("enqueue_records_1", "give_notice_1")),
        sequences=frozenset(("standing_seqs",)),
        others=frozenset(),
    )


def require_schema(name: str) -> str:
    """Checks a name that becomes part of statements: what an application passes is checked."""
    try:
        return read_schema(name)
    except ValueError as error:
        raise UserError(f"{name!r} cannot be the name of a schema", f"Use {error}.") from error


def read_schema(text: str) -> str:
    if not isinstance(text, str) or not _SCHEMA.fullmatch(text) or text in _RESERVED:
        raise ValueError(ACCEPTED_SCHEMA)
    return text
