"""Named queries: core's, those of extensions, and what may not be named."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import PipelineError
from holdfast.kernel import open_store
from holdfast.kernel.database.extension_folders import all_sql
from holdfast.kernel.database.queries import (
    CORE_FOLDERS,
    SqlFolder,
    compile_query,
    extension_sql,
    load_queries,
)


def write(folder: Path, **files: str) -> SqlFolder:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / f"{name}.sql").write_text(text)
    return SqlFolder(folder, "toy")


def load(folder: SqlFolder, dialect: str = "sqlite") -> dict[str, str]:
    queries = load_queries(dialect, (*CORE_FOLDERS, folder))
    return {name: query.sql for name, query in queries.items() if name.startswith("toy_")}


def test_dialect_replaces_and_adds(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "sql",
        common="-- name: toy_one\nselect 1;\n-- name: toy_two\n-- Says two.\nselect 2;\n",
        sqlite="-- name: toy_two\nselect 'two';\n-- name: toy_three\nselect 3;\n",
    )
    assert load(folder) == {
        "toy_one": "select 1",
        "toy_two": "select 'two'",
        "toy_three": "select 3",
    }
    assert load(folder, "postgres") == {"toy_one": "select 1", "toy_two": "select 2"}


@pytest.mark.parametrize("file", ["common", "sqlite"])
@pytest.mark.parametrize("name", ["one", "toys_one", "jobs", "toy"])
def test_query_without_the_prefix_of_its_extension_is_refused(
    tmp_path: Path, file: str, name: str
) -> None:
    folder = write(tmp_path / "sql", **{file: f"-- name: {name}\nselect 1;\n"})
    with pytest.raises(PipelineError, match=f"{file}.sql: the query {name} does not begin with"):
        load(folder)


def test_query_without_a_name_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "sql", common="-- about it\nselect 1;\n-- name: toy_b\nselect 2;\n")
    with pytest.raises(PipelineError, match=r"common\.sql: there is a query without a name"):
        load(folder)


def test_fragment_is_put_into_the_queries_that_use_it(tmp_path: Path) -> None:
    text = "-- fragment: toy_columns\na, b\n\n-- name: toy_all\nselect @toy_columns from t;\n"
    assert load(write(tmp_path / "sql", common=text)) == {"toy_all": "select a, b from t"}


def test_fragment_without_the_prefix_of_its_extension_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "sql", common="-- fragment: job_columns\nid\n")
    with pytest.raises(PipelineError, match="the fragment job_columns does not begin with toy_"):
        load(folder)


@pytest.mark.parametrize("file", ["common", "sqlite"])
def test_query_that_core_or_another_extension_has_is_refused(tmp_path: Path, file: str) -> None:
    core = write(tmp_path / "core", common="-- name: toy_one\nselect 0;\n")
    folder = write(tmp_path / "sql", **{file: "-- name: toy_one\nselect 1;\n"})
    with pytest.raises(
        PipelineError, match=rf"{file}\.sql: there is already a query named toy_one"
    ):
        load_queries("sqlite", (SqlFolder(core.path), folder))


def test_query_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    text = "-- name: toy_one\nselect 1;\n"
    for files in ({"common": text + text}, {"common": text, "more": text}):
        folder = write(tmp_path / "-".join(files), **files)
        with pytest.raises(PipelineError, match=r"\.sql: the query toy_one is defined twice"):
            load(folder)


def test_extension_without_sql_has_no_folder(tmp_path: Path) -> None:
    (tmp_path / "with" / "sql").mkdir(parents=True)
    (tmp_path / "without").mkdir()
    packages = {"with": tmp_path / "with", "without": tmp_path / "without"}
    assert extension_sql(packages) == (SqlFolder(tmp_path / "with" / "sql", "with"),)


async def test_store_runs_the_queries_of_the_folders_it_is_given(
    database_url: str, tmp_path: Path
) -> None:
    sql = (
        "-- name: toy_sums\n"
        "select k.a + k.b, k.c from @rows(a bigint, b bigint, c text) k where k.a < 5;\n"
    )
    folder = write(tmp_path / "sql", common=sql)
    store = await open_store(database_url, sql=(*all_sql(), folder))
    try:
        rows = await store.database.write(
            "test", lambda tx: tx.take_many("toy_sums", [(1, 2, "x"), (7, 1, "no"), (3, 4, None)])
        )
        assert [tuple(row) for row in rows] == [(3, "x"), (7, None)]
        by_name = [{"c": "x", "b": 2, "a": 1}, {"a": 3, "b": 4, "c": None}]
        rows = await store.database.write("test", lambda tx: tx.take_many("toy_sums", by_name))
        assert [tuple(row) for row in rows] == [(3, "x"), (7, None)]
        for wrong in ({"a": 1, "b": 2}, {"a": 1, "b": 2, "c": "x", "d": 4}):
            with pytest.raises(PipelineError, match=r"toy_sums has other names .*: [cd]\n"):
                await store.database.write(
                    "test", lambda tx, wrong=wrong: tx.take_many("toy_sums", [wrong])
                )
    finally:
        await store.close()


def test_rows_are_arrays_on_postgresql_and_json_on_sqlite() -> None:
    sql = "select * from @rows(a bigint,\n b double precision) k"
    assert compile_query("postgres", sql).sql == (
        "select * from unnest($1::bigint[], $2::double precision[]) k (a, b)"
    )
    assert compile_query("sqlite", sql).sql == (
        "select * from (select value ->> 0 as a, value ->> 1 as b from json_each(:batch)) k"
    )
