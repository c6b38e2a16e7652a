"""Core and extensions have histories of their own, and none stops another."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.errors import PipelineError, SchemaError, UserError
from holdfast.kernel import open_store
from holdfast.kernel.database.migrate import (
    CORE,
    Branch,
    downgrade,
    installed_branches,
    require_current,
    status,
    upgrade,
)
from tests.store.checks import execute, fetch, tables_of

TABLE = """
create table {table} (id integer);
insert into {table} values (1);
"""
DOWN = """
-- down
drop table {table};
"""


def make_branch(folder: Path, name: str, version: int = 2) -> Branch:
    branch = Branch(name, folder / name)
    (branch.folder / "steps").mkdir(parents=True)
    (branch.folder / "schema.sql").write_text(TABLE.format(table=f"{name}_1"))
    for number in range(2, version + 1):
        branch = add_step(branch, number)
    return branch


def add_step(branch: Branch, number: int, then: str = "") -> Branch:
    """A later release of the extension: a step, and a schema that includes what it does."""
    made = TABLE.format(table=f"{branch.name}_{number}")
    with (branch.folder / "schema.sql").open("a") as schema:
        schema.write(made)
    step = branch.folder / "steps" / f"{number:04}_step.sql"
    step.write_text(made + then + DOWN.format(table=f"{branch.name}_{number}"))
    return Branch(branch.name, branch.folder)


@pytest.fixture
def toy(tmp_path: Path) -> Branch:
    return make_branch(tmp_path, "toy")


def tables(url: str) -> set[str]:
    async def read() -> set[str]:
        store = await open_store(url)
        names = {name for name in await tables_of(store) if name.startswith(("toy", "other"))}
        place = "holdfast_" if url.startswith("sqlite") else "holdfast."
        for name in names:
            assert await fetch(store, f"select id from {place}{name}") == [(1,)]
        await store.close()
        return names

    return asyncio.run(read())


def test_each_is_upgraded_and_downgraded_alone(
    database_url: str, toy: Branch, tmp_path: Path
) -> None:
    branches = (*installed_branches(), toy, make_branch(tmp_path, "other", 1))
    before = status(database_url)
    upgrade(database_url, "toy", branches=branches)
    assert tables(database_url) == {"toy_1", "toy_2"}
    assert status(database_url, branches)["other"].current is None
    upgrade(database_url, branches=branches)
    assert status(database_url, branches).up_to_date
    downgrade(database_url, "toy", branches=branches)
    assert tables(database_url) == {"toy_1", "other_1"}
    downgrade(database_url, "toy", "base", branches=branches)
    assert tables(database_url) == {"other_1"}
    with pytest.raises(SchemaError, match="toy has no tables"):
        downgrade(database_url, "toy", branches=branches)
    found = status(database_url, branches)
    assert found[CORE] == before[CORE] and found["other"].up_to_date


def test_branch_that_was_uninstalled_keeps_its_tables_and_stops_nothing(
    database_url: str, toy: Branch
) -> None:
    upgrade(database_url, branches=(*installed_branches(), toy))
    left = status(database_url)["toy"]
    assert (left.current, left.newest, left.up_to_date) == (2, None, True)
    assert "not installed" in left.state
    require_current(database_url)
    upgrade(database_url)
    assert tables(database_url) == {"toy_1", "toy_2"}
    with pytest.raises(UserError, match="'toy' is not installed"):
        downgrade(database_url, "toy", "base")
    # Installed again, it continues where it was.
    upgrade(database_url, branches=(*installed_branches(), add_step(toy, 3)))
    assert tables(database_url) == {"toy_1", "toy_2", "toy_3"}


def test_core_is_not_removed_while_an_extension_has_tables(database_url: str, toy: Branch) -> None:
    upgrade(database_url, branches=(*installed_branches(), toy))
    for branch in installed_branches()[1:]:
        downgrade(database_url, branch.name, "base")
    with pytest.raises(SchemaError, match="while there are tables of toy") as raised:
        downgrade(database_url, CORE, "base")
    assert raised.value.hint == "First run: holdfast migrate down toy base"
    downgrade(database_url, "toy", "base", branches=(*installed_branches(), toy))
    downgrade(database_url, CORE, "base")
    assert status(database_url).is_empty


@pytest.mark.parametrize("name", ["core", "toy"])
def test_branch_newer_than_the_program_is_refused_by_name(
    database_url: str, toy: Branch, name: str
) -> None:
    branches = (*installed_branches(), toy)
    upgrade(database_url, branches=branches)

    async def make_newer() -> None:
        store = await open_store(database_url)
        await execute(store, f"update schema_versions set version = 9999 where branch = '{name}'")
        await store.close()

    asyncio.run(make_newer())
    assert [branch.name for branch in status(database_url, branches).newer] == [name]
    for refused in (
        lambda: upgrade(database_url, branches=branches),
        lambda: downgrade(database_url, "toy", branches=branches),
    ):
        with pytest.raises(SchemaError, match=f"{name} 9999 is newer than this program") as raised:
            refused()
        owner = "Holdfast" if name == "core" else "the extension toy"
        assert f"the version of {owner}" in (raised.value.hint or "")


def test_extension_is_upgraded_after_core(empty_database_url: str, toy: Branch) -> None:
    with pytest.raises(SchemaError, match="core's schema is empty"):
        upgrade(empty_database_url, "toy", branches=(*installed_branches(), toy))
    assert status(empty_database_url).is_empty


def test_unknown_names_and_versions_are_refused(database_url: str, toy: Branch) -> None:
    branches = (*installed_branches(), toy)
    upgrade(database_url, branches=branches)
    with pytest.raises(UserError, match="'nothing' is not installed"):
        upgrade(database_url, "nothing")
    for version in ("3", "0001", "head"):
        with pytest.raises(UserError, match="cannot go back") as raised:
            downgrade(database_url, "toy", version, branches=branches)
        assert raised.value.hint == "Use one of: base, 1."


@pytest.mark.parametrize("name", ["0004_late.sql", "3_short.sql", "0003.sql", "0003_x.oracle.sql"])
def test_step_with_another_name_is_refused(database_url: str, toy: Branch, name: str) -> None:
    (toy.folder / "steps" / name).write_text("select 1;")
    with pytest.raises(PipelineError, match=r"0002_words\.sql|the numbers of the steps"):
        upgrade(database_url, branches=(*installed_branches(), Branch("toy", toy.folder)))


@pytest.mark.parametrize("mistake", ["oops;", "insert into nothing values (1);", "select (1"])
def test_failed_step_is_named_and_leaves_everything_as_it_was(
    database_url: str, toy: Branch, mistake: str
) -> None:
    upgrade(database_url, branches=(*installed_branches(), toy))
    before = status(database_url)
    with pytest.raises(SchemaError, match="the migration of toy failed: "):
        upgrade(database_url, branches=(*installed_branches(), add_step(toy, 3, then=mistake)))
    assert (tables(database_url), status(database_url)) == ({"toy_1", "toy_2"}, before)


def test_word_that_is_not_known_is_named(database_url: str, toy: Branch) -> None:
    later = add_step(toy, 3, then="create table toy_x (at @moment);")
    with pytest.raises(
        PipelineError, match=r"schema\.sql|0003_step\.sql: there is no word @moment"
    ):
        upgrade(database_url, "toy", branches=(*installed_branches(), later))
        later.up(3, "sqlite")


def test_step_can_differ_between_the_databases(database_url: str, toy: Branch) -> None:
    upgrade(database_url, branches=(*installed_branches(), toy))
    later = add_step(toy, 3)
    for dialect in ("sqlite", "postgres"):
        file = toy.folder / "steps" / f"0003_more.{dialect}.sql"
        file.write_text(f"insert into other_1 values ('{dialect}');\n-- down\nselect 1;\n")
    words = "create table other_1 (id text); insert into other_1 values (1);"
    (toy.folder / "steps" / "0003_first.sql").write_text(f"{words}\n-- down\ndrop table other_1;\n")
    later = Branch("toy", toy.folder)
    upgrade(database_url, branches=(*installed_branches(), later))

    async def found() -> set[str]:
        store = await open_store(database_url)
        place = "holdfast_" if database_url.startswith("sqlite") else "holdfast."
        rows = await fetch(store, f"select id from {place}other_1")
        await store.close()
        return {row[0] for row in rows}

    assert asyncio.run(found()) == {"1", "sqlite" if "sqlite:" in database_url else "postgres"}
    downgrade(database_url, "toy", "2", branches=(*installed_branches(), later))
    assert tables(database_url) == {"toy_1", "toy_2"}


def test_step_without_a_way_back_says_so(database_url: str, toy: Branch) -> None:
    later = add_step(toy, 3)
    (toy.folder / "steps" / "0003_step.sql").write_text("create table toy_3 (id integer);")
    upgrade(database_url, branches=(*installed_branches(), later))
    with pytest.raises(SchemaError, match="step 3 of toy cannot be undone"):
        downgrade(database_url, "toy", branches=(*installed_branches(), later))
    assert status(database_url, (*installed_branches(), later)).up_to_date


def test_folder_without_a_schema_is_not_a_branch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "schema").mkdir()
    monkeypatch.setattr(
        "holdfast.kernel.database.schema.extension_folders", lambda: {"toy": tmp_path}
    )
    assert [branch.name for branch in installed_branches()] == [CORE]


#: Upgrades core and toy; with a number, it is killed before it takes that step of toy's.
UPGRADE = """
import os, signal, sys
from pathlib import Path
from holdfast.kernel.database.migrate import Branch, installed_branches, upgrade

class Toy(Branch):
    def up(self, number, dialect):
        if str(number) in sys.argv[3:]:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().up(number, dialect)

    def create(self, dialect):
        if "1" in sys.argv[3:]:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().create(dialect)

upgrade(sys.argv[1], branches=(*installed_branches(), Toy("toy", Path(sys.argv[2]))))
"""


def start_upgrade(url: str, toy: Branch, *killed_at: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", UPGRADE, url, str(toy.folder), *killed_at])


def test_process_that_is_killed_half_way_leaves_an_empty_database_empty(
    empty_database_url: str, toy: Branch
) -> None:
    """In the last branch of all: core has no tables either, and the next try makes them."""
    assert start_upgrade(empty_database_url, toy, "1").wait(60) == -signal.SIGKILL
    assert status(empty_database_url).is_empty
    assert start_upgrade(empty_database_url, toy).wait(60) == 0
    assert tables(empty_database_url) == {"toy_1", "toy_2"}
    require_current(empty_database_url)


def test_process_that_is_killed_between_steps_leaves_everything_as_it_was(
    database_url: str, toy: Branch
) -> None:
    upgrade(database_url, branches=(*installed_branches(), toy))
    later = add_step(add_step(toy, 3), 4)
    assert start_upgrade(database_url, later, "4").wait(60) == -signal.SIGKILL
    assert tables(database_url) == {"toy_1", "toy_2"}
    assert status(database_url)["toy"].current == 2
    assert start_upgrade(database_url, later).wait(60) == 0
    assert tables(database_url) == {"toy_1", "toy_2", "toy_3", "toy_4"}


def test_processes_that_migrate_at_once_take_each_step_once(database_url: str, toy: Branch) -> None:
    upgrade(database_url, branches=(*installed_branches(), toy))
    later = add_step(add_step(toy, 3), 4)
    processes = [start_upgrade(database_url, later) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert tables(database_url) == {"toy_1", "toy_2", "toy_3", "toy_4"}
    assert status(database_url)["toy"].current == 4
