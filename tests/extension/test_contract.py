"""What holds for every installed extension, and for the toy that has one of everything: its names
begin with its own, its tables come and go with data in them, everything it has is documented, and
the core does not know it."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from dataclasses import fields

import pytest

from holdfast.cli.references import declared_metrics, extension_tables
from holdfast.configuration import every_setting
from holdfast.extension import Extension
from holdfast.kernel import open_store
from holdfast.kernel.database.migrate import CORE, downgrade, status, upgrade
from holdfast.kernel.database.queries import CORE_FOLDERS, load_queries
from holdfast.server.api_app import api_routers
from holdfast.server.navigation import ENTRIES, Entry
from holdfast.server.site import page_routers
from holdfast.settings import Group, installed_groups
from tests.docs.described_commands import (
    sections_of,
    undescribed_options,
    unexplained,
    unknown_words,
)
from tests.extension.conftest import Installed
from tests.extension.contract import CORE_BRANCH, ROOT, SUBJECTS, Subject, routes
from tests.extension.weather import EXTENSION as TOY
from tests.store.checks import execute, fetch, make_job, tables_of
from tests.store.deletion_scenarios import delete_all, traces_of

PACKAGE = ROOT / "src" / "holdfast"
each_extension = pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)


# Names.


@each_extension
@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_queries_begin_with_its_name(subject: Subject, dialect: str) -> None:
    own = set(load_queries(dialect, subject.sql)) - set(load_queries(dialect, CORE_FOLDERS))
    assert [name for name in own if not name.startswith(f"{subject.name}_")] == []
    assert own or not (subject.folder / "sql").exists()


@each_extension
def test_tables_and_indexes_begin_with_its_name(subject: Subject, empty_database_url: str) -> None:
    upgrade(empty_database_url, branches=(CORE_BRANCH,))
    core = asyncio.run(_relations(empty_database_url, subject))
    upgrade(empty_database_url, branches=subject.branches)
    own = asyncio.run(_relations(empty_database_url, subject)) - core
    assert [name for name in own if not name.startswith(f"{subject.name}_")] == []
    assert own or len(subject.branches) == 1


async def _relations(url: str, subject: Subject) -> set[str]:
    """Tables and indexes; not those that SQLite makes by itself."""
    store = await open_store(url, sql=subject.sql)
    if url.startswith("sqlite"):
        indexes = "select name from sqlite_schema where type = 'index' and name not like 'sqlite%'"
    else:
        indexes = "select indexname from pg_indexes where schemaname = 'holdfast'"
    rows = await fetch(store, indexes)
    names = {row[0].removeprefix("holdfast_") for row in rows} | await tables_of(store)
    await store.close()
    return names


@each_extension
def test_settings_begin_with_its_name_and_are_not_those_of_others(subject: Subject) -> None:
    group = Group(subject.extension)
    prefix = f"HOLDFAST_{subject.name.upper()}_"
    assert [each.name for each in group.settings if not each.name.startswith(prefix)] == []
    every_setting(installed_groups() | {subject.name: group})


@each_extension
def test_paths_begin_with_its_name(subject: Subject) -> None:
    """Those of programs may also begin with what it declares in `machines`."""
    if subject.pack is None:
        return
    pages = [path for _, path in routes(subject.pack.router)]
    assert [path for path in pages if not f"{path}/".startswith(f"/{subject.name}/")] == []
    allowed = (f"/api/{subject.name}/", *subject.pack.machines)
    programs = [path for _, path in routes(subject.pack.api)]
    assert [path for path in programs if not f"{path}/".startswith(allowed)] == []
    assert [prefix for prefix in subject.pack.machines if not prefix.endswith("/")] == []
    core = [route for router in (*api_routers(), *page_routers()) for route in routes(router)]
    taken = [path for _, path in core if f"{path}/".startswith((f"/{subject.name}/", *allowed))]
    assert taken == []


@each_extension
def test_templates_and_static_files_are_served_under_its_name(subject: Subject) -> None:
    pack = subject.pack
    if pack is None:
        return
    assert pack.name == subject.name  # templates are NAME/..., static files /static/NAME/...
    folders = [folder for folder in (pack.templates, pack.static) if folder is not None]
    for folder in folders:
        assert folder.is_relative_to(subject.folder) and any(folder.iterdir())
    linked = [
        path
        for template in pack.templates.rglob("*.html")
        for path in re.findall(r'"/static/([\w-]+/[^"]+)"', template.read_text())
    ]
    for path in linked:
        assert pack.static is not None
        assert (pack.static / path.removeprefix(f"{subject.name}/")).is_file(), path


def test_entries_of_the_navigation_differ_and_have_icons() -> None:
    packs = [subject.pack for subject in SUBJECTS if subject.pack is not None]
    entries = [entry for pack in packs for entry in pack.entries]
    for part in ("name", "path", "key", "icon"):
        values = [getattr(entry, part) for entry in (*ENTRIES, *entries)]
        assert len(set(values)) == len(values), part
    default = Entry("", "", "", "").icon
    assert [entry.name for entry in entries if entry.icon == default] == []
    for pack in packs:
        assert all(f"{entry.path}/".startswith(f"/{pack.name}/") for entry in pack.entries)


@each_extension
def test_metrics_events_and_flags_begin_with_its_name(subject: Subject) -> None:
    metrics = [metric.name for metric in declared_metrics(subject.extension)]
    prefix = f"holdfast_{subject.name}_"
    assert [name for name in metrics if not name.startswith(prefix)] == []
    assert [
        event for event in subject.extension.events if not event.startswith(f"{subject.name}.")
    ] == []
    names = [flag.name for flag in subject.extension.all_flags]
    assert [name for name in names if not name.startswith(f"{subject.name}_")] == []


# Tables.


@each_extension
@pytest.mark.parametrize("way", ["at once", "step by step"])
def test_tables_go_and_come_back_with_data_in_them(
    subject: Subject, way: str, empty_database_url: str
) -> None:
    url, branches = empty_database_url, subject.branches
    upgrade(url, branches=branches)
    if len(branches) == 1:
        return
    own = asyncio.run(_filled(url, subject))
    assert own == set(subject.sample_rows)
    steps = ["base"] if way == "at once" else ["-1"] * branches[1].newest
    for step in steps:
        downgrade(url, subject.name, step, branches=branches)
    found = status(url, branches)
    assert found[subject.name].current is None and found[CORE].up_to_date
    assert asyncio.run(_own_tables(url, subject)) == set()
    upgrade(url, subject.name, branches=branches)
    assert status(url, branches).up_to_date
    assert asyncio.run(_filled(url, subject)) == own


async def _filled(url: str, subject: Subject) -> set[str]:
    """Its tables, each with a row in it."""
    store = await open_store(url, sql=subject.sql)
    await make_job(store)
    for table, row in subject.sample_rows.items():
        await execute(store, f"insert into {table} {row}")
    tables = {name for name in await tables_of(store) if name.startswith(f"{subject.name}_")}
    empty = [name for name in tables if not await fetch(store, f"select 1 from {name} limit 1")]
    await store.close()
    assert empty == [], f"add rows for them to {subject.rows}"
    return tables


async def _own_tables(url: str, subject: Subject) -> set[str]:
    store = await open_store(url, sql=subject.sql)
    tables = {name for name in await tables_of(store) if name.startswith(f"{subject.name}_")}
    assert await fetch(store, "select id from jobs"), "core's rows are left alone"
    await store.close()
    return tables


# Documentation: in the extension's own docs folder.


@each_extension
def test_settings_metrics_and_events_are_documented(subject: Subject) -> None:
    """As `python -m holdfast.cli.references NAME` prints them."""
    tables = extension_tables(subject.extension).values()
    lines = [line for table in tables for line in table.splitlines()]
    assert [line for line in lines if line not in subject.docs.splitlines()] == []


@each_extension
def test_tables_are_documented_and_no_others(subject: Subject, empty_sqlite_url: str) -> None:
    upgrade(empty_sqlite_url, branches=subject.branches)
    described = set(re.findall(r"^\*\*`(\w+)`\*\*", subject.docs, re.MULTILINE))
    tables = asyncio.run(_tables(empty_sqlite_url, subject))
    assert described == {name for name in tables if name.startswith(f"{subject.name}_")}


async def _tables(url: str, subject: Subject) -> set[str]:
    store = await open_store(url, sql=subject.sql)
    tables = await tables_of(store)
    await store.close()
    return tables


@each_extension
def test_routes_are_documented(subject: Subject) -> None:
    if subject.pack is None:
        return
    missing = [
        f"{method} {path}"
        for method, path in routes(subject.pack.api)
        if f"`{method} {path}`" not in subject.docs
    ]
    assert missing == []


@each_extension
def test_commands_are_documented_and_explain_themselves(subject: Subject) -> None:
    """Under the heading Commands; other sections show them as they like."""
    sections = [each for each in sections_of(subject.docs) if each.startswith("Commands\n")]
    for name, command in subject.commands.items():
        assert undescribed_options(name, command, sections) == set(), name
        assert unexplained(command) == [], name
    assert [unknown_words(each, subject.commands) for each in sections] in ([], [set()])
    assert subject.extension.help.endswith(".")


@each_extension
def test_flags_are_documented(subject: Subject) -> None:
    flags = [flag.name for flag in subject.extension.all_flags]
    assert [name for name in flags if f"`{name}`" not in subject.docs] == []


@each_extension
@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_rows_of_a_deleted_job_are_deleted_by_chunks(subject: Subject, dialect: str) -> None:
    queries = load_queries(dialect, subject.sql)
    named = [name for name in queries if name.startswith(f"{subject.name}_delete_job")]
    for name in named:
        assert set(queries[name].parameters) == {"job_id", "limit"}, name
        assert "returning" in queries[name].sql, name


@each_extension
def test_job_of_the_extension_can_be_deleted(subject: Subject, empty_database_url: str) -> None:
    upgrade(empty_database_url, branches=subject.branches)

    async def delete() -> dict[str, int]:
        store = await open_store(empty_database_url, sql=subject.sql)
        try:
            job_id = await make_job(store, pipeline=subject.name)
            await delete_all(store, job_id)
            return await traces_of(store, job_id)
        finally:
            await store.close()

    assert asyncio.run(delete()) == {}


# What the core knows of it: nothing.


@pytest.mark.parametrize(
    "subject", [each for each in SUBJECTS if each.extension is not TOY], ids=lambda each: each.name
)
def test_no_file_of_the_core_mentions_it(subject: Subject) -> None:
    """Its documentation uses the toy's name for examples."""
    word = re.compile(rf"\b{subject.name}(\b|_)", re.IGNORECASE)
    files = [path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert len(files) > 200
    mentions = [
        f"{path.relative_to(PACKAGE)}: {match[0]}"
        for path in files
        if (match := word.search(path.read_text(encoding="utf-8", errors="replace")))
    ]
    assert mentions == []


SHOW_HELP = """
import sys
from holdfast.cli.main import main
from holdfast.extension import installed
sys.argv = ["holdfast", "--help"]
try:
    main()
except SystemExit as exit:
    assert not exit.code
packages = tuple(each.package + "." for each in installed().values())
print("imported:", *(name for name in sys.modules if name.startswith(packages)))
print("installed:", *installed())
"""


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_help_imports_manifests_only(weather: Installed) -> None:
    shown = subprocess.run(
        [sys.executable, "-c", SHOW_HELP],
        capture_output=True,
        text=True,
        check=True,
        env=weather.environment,
    ).stdout
    for subject in SUBJECTS:
        assert re.search(rf"^  {subject.name} +{re.escape(subject.extension.help)}$", shown, re.M)
    lines = shown.splitlines()
    assert lines[-2].strip() == "imported:"
    assert set(lines[-1].split()[1:]) == {subject.name for subject in SUBJECTS}


# The toy.


def test_toy_has_one_of_everything() -> None:
    """So that the tests above look at each part at least once."""
    toy = next(each for each in SUBJECTS if each.extension is TOY)
    empty = [each.name for each in fields(Extension) if not getattr(TOY, each.name)]
    assert empty == []
    folders = ("sql", "schema", "docs", "templates", "static")
    assert [name for name in folders if not any((toy.folder / name).iterdir())] == []
    pack = toy.pack
    assert pack is not None and pack.static and pack.entries and pack.machines
    assert list(routes(pack.router)) and list(routes(pack.api))
    assert toy.commands and Group(TOY).settings and declared_metrics(TOY)
