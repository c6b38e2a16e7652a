"""Settings, migrations, doctor, and a database that is not as it should be."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.desk import QUICK, UPPER, Desk
from tests.command import HoldfastCommand
from tests.names import whole_names
from tests.ports import free_port
from tests.postgres import PostgresServer

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
def empty_desk(empty_database_url: str, tmp_path: Path) -> Desk:
    return Desk(HoldfastCommand(empty_database_url, tmp_path))


@on_sqlite
def test_unknown_setting_is_refused_with_the_nearest_known(desk: Desk) -> None:
    said = desk.fail("jobs", env={"HOLDFAST_CLAIM_MAXX": "5"})
    assert "HOLDFAST_CLAIM_MAXX" in said and "HOLDFAST_CLAIM_MAX" in said
    assert "CLAIM_MAX" in desk.fail("jobs", env={"CLAIM_MAX": "zero"})
    both = desk.fail("jobs", env={"CLAIM_MAX": "0", "HOLDFAST_LOG_LEVEL": "loud"})
    assert "2 settings are wrong" in both


@on_sqlite
def test_names_without_a_prefix_are_aliases(desk: Desk) -> None:
    desk.write("upper.py", UPPER)
    desk.write_rows("in.csv", 40)
    aliases = {
        "CLAIM_MAX": "5", "INGEST_MIN_ROWS": "7", "INGEST_MAX_ROWS": "7",
        "WORKER_TARGET_SLICE_MS": "1000", "LOCK_FLOOR_MS": "5000", "MAX_ATTEMPTS_NOT_FOUND": "1",
    }  # fmt: skip
    desk.succeed("run", "upper.py", "in.csv", env=aliases)
    told = desk.show()
    assert told["counters"]["done"] == 40
    assert told["streams"][0]["pages_count"] == 6


@on_sqlite
def test_backfills_do_not_run_where_they_are_disabled(desk: Desk) -> None:
    desk.write(
        "counting.py",
        """
        from holdfast import Page, Pipeline, Record

        class Numbers(Pipeline):
            async def discover(self, source, cursor, ctx):
                start = cursor or 0
                for page in range(start, 3):
                    records = [Record({"n": page * 10 + n}) for n in range(10)]
                    yield Page(records, next_cursor=page + 1, end=page == 2)

            async def process(self, row, ctx):
                return {"n": row["n"]}
        """,
    )
    assert "Backfill disabled. Set BACKFILL_ENABLED=true" in desk.fail(
        "run", "counting.py", env={"BACKFILL_ENABLED": "false"}
    )
    assert desk.json("jobs") == []
    assert "Backfill disabled. Set BACKFILL_ENABLED=true" in desk.fail(
        "run", "counting.py", env={"HOLDFAST_BACKFILL_ENABLED": "false"}
    )
    desk.succeed("run", "counting.py", "--max-items", "5", "--no-work")
    why = json.loads(
        desk.succeed("show", "1", "--json", env={"BACKFILL_ENABLED": "false"})
    )["why"]  # fmt: skip
    assert why["kind"] == "kill switch"


def test_migrate_goes_up_down_and_up_again(empty_desk: Desk) -> None:
    empty = empty_desk.json("migrate", "status")
    heads = {branch["name"]: branch["newest"] for branch in empty["branches"]}
    assert not empty["up_to_date"] and "core" in heads
    assert {branch["current"] for branch in empty["branches"]} == {None}
    unused = dict.fromkeys(heads)
    assert _schema(empty_desk, "up") == {**unused, "core": heads["core"]}
    assert _schema(empty_desk, "up", "posts") == {**unused, **_only(heads, "core", "posts")}
    assert "is not a direction" in empty_desk.fail("migrate", "sideways")
    assert "Use one of: core" in empty_desk.fail("migrate", "down", "--yes")
    assert "'nothing' is not installed" in empty_desk.fail("migrate", "up", "nothing")
    declined = empty_desk.holdfast("migrate", "down", "core")
    assert declined.returncode == 1 and "Traceback" not in declined.stderr
    assert _schema(empty_desk, "status") == {**unused, **_only(heads, "core", "posts")}
    assert "not used here" in empty_desk.succeed("migrate", "status")


def _only(heads: dict[str, int], *names: str) -> dict[str, int | None]:
    return {name: heads[name] for name in names}


def test_database_has_the_tables_of_the_pipelines_that_are_used_with_it(empty_desk: Desk) -> None:
    empty_desk.succeed("migrate", "up")
    assert "posts was not used with this database yet" in empty_desk.fail("posts", "status")
    empty_desk.write("list.csv", "name\nchair\n")
    empty_desk.succeed("run", "catalog", "list.csv", "--no-work")
    found = _schema(empty_desk, "status")
    assert {name for name, version in found.items() if version} == {"core", "catalog"}
    assert empty_desk.json("migrate", "status")["up_to_date"]
    empty_desk.succeed("migrate", "down", "catalog", "base", "--yes")
    empty_desk.succeed("doctor")
    empty_desk.succeed(
        "delete", "job", "1", "--yes"
    )  # its tables are gone, and it is none the less
    assert empty_desk.json("jobs") == []
    for surplus in (("status", "core"), ("up", "core", "1")):
        assert "takes no" in empty_desk.fail("migrate", *surplus)


@pytest.mark.exhaustive  # tests/extension/test_contract.py takes the tables of each down and up
def test_each_extension_is_migrated_alone(empty_desk: Desk) -> None:
    for name in _schema(empty_desk, "up"):
        heads = _schema(empty_desk, "up", name)
    for name in [name for name in heads if name != "core"]:
        down = _schema(empty_desk, "down", name, "--yes")
        assert {**down, name: None} == {**heads, name: None} and down[name] != heads[name]
        assert _schema(empty_desk, "up", name) == heads
    refused = empty_desk.fail("migrate", "down", "core", "base", "--yes")
    assert "core's tables cannot be dropped while there are tables of" in refused
    for name in [*(name for name in heads if name != "core"), "core"]:
        assert _schema(empty_desk, "down", name, "base", "--yes")[name] is None


def _schema(desk: Desk, *arguments: str) -> dict[str, int | None]:
    branches = desk.json("migrate", *arguments)["branches"]
    return {branch["name"]: branch["current"] for branch in branches}


def test_schema_newer_than_the_program_is_refused(desk: Desk) -> None:
    set_schema_version(desk, 9999)
    desk.write("upper.py", UPPER)
    desk.write_rows("in.csv", 1)
    for command in (("jobs",), ("run", "upper.py", "in.csv"), ("migrate", "up")):
        assert "9999 is newer than this program" in desk.fail(*command)
    (wrong,) = findings(desk, env={}, code=3)
    assert "newer than this program" in wrong["text"]


def set_schema_version(desk: Desk, version: int) -> None:
    statement = whole_names(
        desk.command.database_url,
        f"update schema_versions set version = {version} where branch = 'core'",
    )
    if desk.command.database_url.startswith("sqlite"):
        file = desk.command.database_url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(file)) as database:
            database.execute(statement)
            database.commit()
    else:
        code = (
            "import asyncio, asyncpg, sys\n"
            "async def main():\n"
            "    connection = await asyncpg.connect(sys.argv[1])\n"
            "    await connection.execute(sys.argv[2])\n"
            "asyncio.run(main())\n"
        )
        command = [sys.executable, "-c", code, desk.command.database_url, statement]
        subprocess.run(command, check=True)


def findings(desk: Desk, env: dict[str, str], code: int) -> list[dict[str, str]]:
    """What `doctor` finds wrong, each with a way to fix it."""
    done = desk.holdfast("doctor", "--json", env=env)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    wrong = [found for found in json.loads(done.stdout) if not found["ok"]]
    assert all(found["fix"] for found in wrong)
    return wrong


def test_doctor_finds_nothing_wrong_with_a_good_set_up(desk: Desk) -> None:
    assert findings(desk, {}, code=0) == []
    assert "reachable; 0 live workers" in desk.succeed("doctor")


@on_sqlite
def test_doctor_names_what_is_wrong_and_how_to_fix_it(desk: Desk, tmp_path: Path) -> None:
    (found,) = findings(desk, {"HOLDFAST_CLAIM_MAXX": "1"}, code=3)
    assert "HOLDFAST_CLAIM_MAX" in found["text"] + found["fix"]

    (tmp_path / "file").write_text("in the way")
    in_the_way = findings(desk, {"HOLDFAST_DATA_DIR": str(tmp_path / "file" / "x")}, code=3)
    assert "data folder" in [found["what"] for found in in_the_way]

    (tmp_path / "garbage.db").write_bytes(b"this is no database " * 100)
    garbage = {"HOLDFAST_DATABASE_URL": f"sqlite:///{tmp_path / 'garbage.db'}"}
    assert any("is not an SQLite database" in each["text"] for each in findings(desk, garbage, 3))

    nobody = f"postgresql://nobody@127.0.0.1:{free_port()}/nothing"
    gone = findings(desk, {"HOLDFAST_DATABASE_URL": nobody}, code=3)
    assert {found["what"] for found in gone} >= {"schema"}


@on_sqlite
def test_wrong_postgres_user_host_and_database_are_distinguished(
    desk: Desk, postgres_server: PostgresServer
) -> None:
    url = postgres_server.create_database()
    base, _, _ = url.rpartition("/")
    missing = {"HOLDFAST_DATABASE_URL": f"{base}/no_such_database"}
    assert "no_such_database" in desk.fail("jobs", env=missing)
    stranger = (
        url.replace("://", "://stranger@", 1)
        if "@" not in url
        else url.replace(url[url.index("://") + 3 : url.index("@")], "stranger", 1)
    )
    assert "Correct the user and password" in desk.fail(
        "jobs", env={"HOLDFAST_DATABASE_URL": stranger}
    )
    unreachable = {"HOLDFAST_DATABASE_URL": f"postgresql://a:secret@127.0.0.1:{free_port()}/b"}
    said = desk.fail("jobs", env=unreachable)
    assert "cannot be reached" in said
    assert "secret" not in said
    unknown = {"HOLDFAST_DATABASE_URL": "postgresql://a:secret@no-such-host.invalid/b"}
    assert "secret" not in desk.fail("jobs", env=unknown)


@on_sqlite
def test_first_look_at_an_empty_folder_says_where_to_begin(desk: Desk, tmp_path: Path) -> None:
    fresh = {"HOLDFAST_DATABASE_URL": "", "HOLDFAST_DATA_DIR": str(tmp_path / "fresh")}
    said = desk.fail("jobs", env=fresh)
    assert "there is no database at" in said
    assert "holdfast run" in said
    assert not (tmp_path / "fresh").exists()
    desk.write("upper.py", UPPER)
    desk.write_rows("in.csv", 1)
    desk.succeed("run", "upper.py", "in.csv", env=fresh)
    assert (tmp_path / "fresh" / "holdfast.db").exists()


@on_sqlite
def test_locked_database_is_waited_for(desk: Desk) -> None:
    desk.write("upper.py", UPPER)
    desk.write_rows("in.csv", 50)
    file = desk.command.database_url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.execute("begin exclusive")
        process = desk.start("run", "upper.py", "in.csv")
        time.sleep(3)
        assert process.poll() is None
        database.execute("commit")
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert desk.counters()["done"] == 50


@pytest.mark.slow
@on_sqlite
def test_disk_that_is_full_loses_nothing(desk: Desk, tmp_path: Path) -> None:
    """In a mount namespace of its own, on a disk of three megabytes."""
    desk.write("upper.py", UPPER)
    desk.write_rows("in.csv", 100_000)
    disk = tmp_path / "disk"
    disk.mkdir()
    script = (
        f"mount -t tmpfs -o size=3m none {disk} && cd {tmp_path} && "
        f"{sys.executable} -m holdfast run upper.py in.csv; code=$?; "
        f"{sys.executable} -m holdfast show 1 --verify --json > shown.json; "
        f"cp -r {disk} {tmp_path / 'kept'}; exit $code"
    )
    url = f"sqlite:///{disk / 'holdfast.db'}"
    env = desk.command.environment(QUICK | {"HOLDFAST_DATABASE_URL": url})
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=90)
    assert done.returncode == 1, done.stderr
    assert "the disk is full" in done.stderr
    assert "Traceback" not in done.stderr
    kept = {"HOLDFAST_DATABASE_URL": f"sqlite:///{tmp_path / 'kept' / 'holdfast.db'}"}
    done_later = desk.holdfast("run", "upper.py", "in.csv", env=kept)
    assert done_later.returncode == 0, done_later.stderr
    counted = json.loads(desk.succeed("show", "1", "--verify", "--json", env=kept))
    assert counted["problems"] == []
    assert counted["counters"]["done"] == 100_000


@on_sqlite
def test_pipe_that_closes_early_is_not_an_error(desk: Desk) -> None:
    desk.write("upper.py", UPPER)
    desk.write_rows("in.csv", 3000)
    desk.succeed("run", "upper.py", "in.csv", "--no-work")
    command = f"{sys.executable} -m holdfast items 1 --limit 0 | head -1"
    done = subprocess.run(
        ["sh", "-c", command], env=desk.command.environment(), cwd=desk.folder,
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert done.stdout.split() == ["row", "title", "status", "error", "input"]
