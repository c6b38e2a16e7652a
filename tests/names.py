"""Whole names of Holdfast's tables, for SQL that tests and benchmarks run by themselves."""

from __future__ import annotations

from functools import cache

from holdfast.kernel.database.extension_folders import all_sql
from holdfast.kernel.database.names import DEFAULT_SCHEMA, Names
from holdfast.kernel.database.queries import names_of


def whole_names(url: str, sql: str) -> str:
    """The statement with `holdfast.jobs` or `holdfast_jobs` for `jobs`, as the database has it."""
    return _names().in_query("sqlite" if url.startswith("sqlite") else "postgres", sql)


@cache
def _names() -> Names:
    return names_of(all_sql(), DEFAULT_SCHEMA)
