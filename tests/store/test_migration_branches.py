"""Core and extensions have histories of their own, and none stops another."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.errors import PipelineError, SchemaError, UserError
from holdfast.store import open_store
from holdfast.store.migrate import (
    CORE,
    Branch,
    downgrade,
    installed_branches,
    require_current,
    status,
    upgrade,
)
from tests.store.checks import execute, fetch, tables_of

MIGRATION = """
from alembic import op

revision = "{revision}"
down_revision = {down!r}
branch_labels = {labels!r}
depends_on = None


def upgrade():
    op.execute("create table {table} (id integer)")
    op.execute("insert into {table} values (1)")
    {then}


def downgrade():
    op.execute("drop table {table}")
"""


def add_migration(branch: Branch, number: int, then: str = "", revision: str | None = None) -> None:
    name = branch.name
    text = MIGRATION.format(
        revision=revision or f"{name}_{number:04}",
        down=f"{name}_{number - 1:04}" if number > 1 else None,
        labels=(name,) if number == 1 else None,
        table=f"{name}_{number}",
        then=then,
    )
    (branch.folder / f"{number:04}_step.py").write_text(text)


def make_branch(folder: Path, name: str, steps: int = 2) -> Branch:
    branch = Branch(name, folder / name)
    branch.folder.mkdir()
    for number in range(1, steps + 1):
        add_migration(branch, number)
    return branch


@pytest.fixture
def toy(tmp_path: Path) -> Branch:
    return make_branch(tmp_path, "toy")


def tables(url: str) -> set[str]:
    async def read() -> set[str]:
        store = await open_store(url)
        names = {name for name in await tables_of(store) if name.startswith(("toy", "other"))}
        for name in names:
            assert await fetch(store, f"select id from {name}") == [(1,)]
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
    assert (left.current, left.head, left.up_to_date) == ("toy_0002", None, True)
    assert "not installed" in left.state
    require_current(database_url)
    upgrade(database_url)
    downgrade(database_url, CORE)
    upgrade(database_url)
    assert tables(database_url) == {"toy_1", "toy_2"}
    with pytest.raises(UserError, match="'toy' is not installed"):
        downgrade(database_url, "toy", "base")
    # Installed again, it continues where it was.
    add_migration(toy, 3)
    upgrade(database_url, branches=(*installed_branches(), toy))
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
    newer, current = ("9999", status(database_url)[CORE].current)
    if name == "toy":
        newer, current = "toy_0009", "toy_0002"

    async def make_newer() -> None:
        store = await open_store(database_url)
        change = f"update alembic_version set version_num = '{newer}'"
        await execute(store, f"{change} where version_num = '{current}'")
        await store.close()

    asyncio.run(make_newer())
    assert [branch.name for branch in status(database_url, branches).newer] == [name]
    for refused in (
        lambda: upgrade(database_url, branches=branches),
        lambda: downgrade(database_url, "toy", branches=branches),
    ):
        with pytest.raises(SchemaError, match=f"{newer} is newer than this program") as raised:
            refused()
        owner = "Holdfast" if name == "core" else "the extension toy"
        assert f"the version of {owner}" in (raised.value.hint or "")


def test_extension_is_upgraded_after_core(empty_database_url: str, toy: Branch) -> None:
    with pytest.raises(SchemaError, match="core's schema is empty"):
        upgrade(empty_database_url, "toy", branches=(*installed_branches(), toy))
    assert status(empty_database_url).is_empty


def test_unknown_names_and_revisions_are_refused(database_url: str, toy: Branch) -> None:
    branches = (*installed_branches(), toy)
    upgrade(database_url, branches=branches)
    with pytest.raises(UserError, match="'nothing' is not installed"):
        upgrade(database_url, "nothing")
    for revision in ("toy_0003", "0001", "head"):
        with pytest.raises(UserError, match="cannot go back") as raised:
            downgrade(database_url, "toy", revision, branches=branches)
        assert raised.value.hint == "Use one of: base, toy_0001."


def test_revision_that_does_not_fit_its_file_is_refused(database_url: str, toy: Branch) -> None:
    add_migration(toy, 3, revision="0003_toy")
    with pytest.raises(PipelineError, match=r"0003_step\.py: the revision '0003_toy'"):
        upgrade(database_url, branches=(*installed_branches(), toy))


@pytest.mark.parametrize("mistake", ['raise RuntimeError("oops")', 'op.execute("oops")', "oops("])
def test_failed_step_is_named_and_leaves_everything_as_it_was(
    database_url: str, toy: Branch, mistake: str
) -> None:
    add_migration(toy, 3, then=mistake)
    before = status(database_url)
    with pytest.raises(SchemaError, match=r"the migration of (toy|an extension) failed: "):
        upgrade(database_url, branches=(*installed_branches(), toy))
    assert (tables(database_url), status(database_url)) == (set(), before)


def test_folder_without_migrations_is_not_a_branch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "migrations").mkdir()
    monkeypatch.setattr("holdfast.store.migrate.extension_folders", lambda: {"toy": tmp_path})
    assert [branch.name for branch in installed_branches()] == [CORE]


def test_process_that_is_killed_half_way_leaves_everything_as_it_was(
    empty_database_url: str, toy: Branch
) -> None:
    """In the last step of all: core's tables are not there either, and the next try makes them."""
    add_migration(toy, 3, then="import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    code = (
        "import sys; from pathlib import Path\n"
        "from holdfast.store.migrate import Branch, installed_branches, upgrade\n"
        "toy = Branch('toy', Path(sys.argv[2]))\n"
        "upgrade(sys.argv[1], branches=(*installed_branches(), toy))\n"
    )
    command = [sys.executable, "-c", code, empty_database_url, str(toy.folder)]
    assert subprocess.run(command, timeout=60).returncode == -signal.SIGKILL
    assert status(empty_database_url).is_empty
    add_migration(toy, 3)
    upgrade(empty_database_url, branches=(*installed_branches(), toy))
    assert tables(empty_database_url) == {"toy_1", "toy_2", "toy_3"}
    require_current(empty_database_url)
