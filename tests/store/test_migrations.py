"""The schema: up, down and up again with data in it, and what does not fit is refused."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.clock import SystemClock
from holdfast.errors import DatabaseGone, SchemaError, UserError
from holdfast.features.accounts.second_factors import SecondFactors
from holdfast.features.bulk.operations import NewOperation
from holdfast.features.console import open_console
from holdfast.features.exports.exports import NewExport
from holdfast.features.ingestion.adapters import AdapterKind, NewAdapter
from holdfast.features.library.files import NewFile
from holdfast.features.rulings.rules import NewRuling
from holdfast.features.schedules.table import Schedules
from holdfast.kernel import DecisionRow, NewJob, Store, open_store
from holdfast.kernel.arrivals.enqueue import Addition
from holdfast.kernel.arrivals.idempotency import MessageKey
from holdfast.kernel.database.extension_folders import all_sql
from holdfast.kernel.database.migrate import (
    CORE,
    BranchStatus,
    downgrade,
    require_current,
    status,
    upgrade,
)
from holdfast.kernel.database.queries import load_queries
from holdfast.kernel.gates.table import Passes, Want
from holdfast.model import ItemStatus, JobState
from holdfast.pipeline import Dedupe, Gate
from holdfast.rulings import RulingKind
from holdfast_client.records import new_item
from tests.store.checks import (
    assert_sound,
    claim_one,
    crash,
    execute,
    fetch,
    filled_job,
    ingest,
    keyed,
    lease_stream,
    make_job,
    settle,
    settlement_of,
    tables_of,
)
from tests.store.message_scenarios import dead
from tests.store.test_upkeep import FUTURE

TABLES = {
    "jobs", "items", "ranges", "outcomes", "attempts", "counters", "keys", "streams",
    "stream_pages", "gates", "gate_holds", "kill_switches", "workers", "schedules",
    "dead_letters", "decisions", "audit", "outbox", "nudges", "duties",
    "secrets", "users", "tokens", "sessions", "login_links", "login_failures", "flags",
    "taken_keys", "files", "exports", "operations", "samples",
    "stream_slices", "audit_pruning", "second_factors", "recovery_codes", "nonces",
    "cache", "rulings", "gate_minutes", "gate_uses", "adapters", "adapter_files",
}  # fmt: skip


async def _fill(url: str) -> None:
    """A row in every table."""
    store = await open_store(url)
    job_id = await make_job(store)
    await ingest(store, await lease_stream(store, job_id), keyed("a", "b"), Dedupe("shop"))
    held = await claim_one(store, job_id, 1)
    decision = DecisionRow("claim", 1, 2, "faster")
    retry = settlement_of(held, ItemStatus.PENDING)
    await store.outcomes.settle(job_id, "one", [retry], decisions=[decision])
    crashing = await filled_job(store, 1)
    while not await store.outcomes.complete(crashing):
        await crash(store, crashing)
    await store.gates.declare(Gate("api", spacing=1.0, concurrency=2))
    await store.gates.reserve("api", "one", Want(1, 1, 60, 0.1))
    await store.gates.count_passes({("api", job_id): Passes(passed=1)})
    await store.jobs.switch("pipeline:other", True, "tester")
    await store.workers.add_worker("one", "host", 1, [])
    await Schedules(store.database).set_schedule("nightly", "demo", "0 3 * * *", "UTC", {}, FUTURE)
    await store.messages.send_again("m-0", "orders", b"{}", 0.0)
    await store.messages.accept_job(MessageKey("m-1", "job.start"), NewJob("demo", "ordered", []))
    await store.messages.keep_dead(dead("m-2", job_id))
    await filled_job(store, 1)
    await store.nudges.add_nudges(True)
    await store.jobs.open(NewJob("events", "events", [], standing=True), "tester")
    await store.additions.enqueue(Addition("events", "", [new_item({"n": 1})]))
    await store.workers.hold_duty("sweep", "one")
    await _fill_people(store, job_id)
    await store.samples.take_samples()
    await store.cache.put("demo", {"key": ({"a": 1}, 60)})
    for table in await tables_of(store):
        assert await fetch(store, f"select 1 from {table} limit 1"), f"{table} has data"
    await store.close()


async def _fill_people(store: Store, job_id: int) -> None:
    await open_console(store).people.add_user("ada", "operator", "hash", "tester")
    await open_console(store).people.add_session("session", "ada", None, 60, "password")
    await open_console(store).people.add_token("ada", "test", "token", None, "tester")
    await open_console(store).people.add_login_link("link", "ada", 60, "tester")
    await open_console(store).people.fail_login(["ip:127.0.0.1"], "ada", None, "password")
    factors = SecondFactors(store.database, SystemClock())
    await factors.enrol("ada")
    await open_console(store).nonces.use_nonce("webhook", "once")
    pruning = "insert into audit_pruning (before, actor, at) values (@after(-9e9), 'x', @now)"
    await execute(store, pruning)
    await open_console(store).secrets.secret("signing", "fresh")
    await store.flags.set_flag("ingest", False, "tester")
    await store.taken_keys.begin_request("ada", "key", "same", "api")
    await open_console(store).files.add_file(
        NewFile("ada", "a.csv", "upload", "/a.csv", 1, "hash", {})
    )
    await open_console(store).exports.add_export(NewExport("ada", job_id, "csv", [], False))
    ruling = NewRuling(RulingKind.EDIT, {"n": 1}, "", "ada", 0)
    await open_console(store).rulings.rule(await store.reads.job(job_id), 1, ruling)
    await open_console(store).operations.add(NewOperation("ada", "cancel", {}, [job_id], 1))
    adapters = open_console(store).adapters
    await adapters.set_adapter(NewAdapter("in", AdapterKind.FOLDER, "/in", "demo", "ada"), "ada")
    await adapters.see_file(await adapters.named("in"), "a.csv 1", "a.csv", 1)


async def _use(url: str) -> None:
    store = await open_store(url)
    assert await tables_of(store) == TABLES
    job_id = await filled_job(store, 3)
    await settle(store, await claim_one(store, job_id))
    assert await store.outcomes.complete(job_id) is JobState.DONE
    await assert_sound(store, job_id)
    await store.close()


@pytest.fixture
def core_url(empty_database_url: str) -> str:
    """A database with core's schema only."""
    upgrade(empty_database_url, CORE)
    return empty_database_url


def _status(url: str) -> BranchStatus:
    return status(url)[CORE]


def test_up_down_and_up_again_with_data_in_every_table(core_url: str) -> None:
    assert _status(core_url).up_to_date
    asyncio.run(_fill(core_url))
    downgrade(core_url, CORE, "base")
    assert _status(core_url).current is None
    upgrade(core_url, CORE)
    asyncio.run(_use(core_url))


def test_upgrade_of_a_current_database_changes_nothing(core_url: str) -> None:
    asyncio.run(_fill(core_url))
    upgrade(core_url)

    async def jobs() -> int:
        store = await open_store(core_url)
        count = len(await open_console(store).jobs.page(None, 10))
        await store.close()
        return count

    assert asyncio.run(jobs()) == 5


def test_downgrade_leaves_no_table_behind(core_url: str) -> None:
    async def left() -> set[str]:
        store = await open_store(core_url)
        tables = await tables_of(store)
        await store.close()
        return tables

    assert asyncio.run(left()) == TABLES
    downgrade(core_url, CORE, "base")
    assert asyncio.run(left()) == set()


def test_empty_database_is_refused_with_the_command_that_helps(empty_database_url: str) -> None:
    with pytest.raises(SchemaError, match="schema is empty, ") as raised:
        require_current(empty_database_url)
    assert raised.value.hint == "Run: holdfast migrate up"


def test_server_that_is_not_there_is_named_so(tmp_path: Path) -> None:
    with pytest.raises(DatabaseGone):
        status("postgresql://nobody@127.0.0.1:1/nothing")


def test_options_of_a_url_are_those_of_every_other_command(empty_postgres_url: str) -> None:
    url = f"{empty_postgres_url}?sslmode=disable"
    upgrade(url)
    assert status(url).up_to_date
    with pytest.raises(DatabaseGone, match="SSL"):  # the server has none
        status(f"{empty_postgres_url}?sslmode=require")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("sslmode=verify-full&sslrootcert=/no/such.pem", "/no/such.pem"),
        ("sslmode=perhaps", "sslmode"),
        ("colour=red", "colour"),
    ],
)
def test_options_that_cannot_be_are_a_mistake_and_no_server_that_is_gone(
    empty_postgres_url: str, options: str, told: str
) -> None:
    with pytest.raises(UserError, match=told) as caught:
        status(f"{empty_postgres_url}?{options}")
    assert "HOLDFAST_DATABASE_URL" in (caught.value.hint or "")


def test_sqlite_file_is_made_for_its_owner_alone(empty_sqlite_url: str) -> None:
    upgrade(empty_sqlite_url)
    file = Path(empty_sqlite_url.removeprefix("sqlite:///"))
    assert file.stat().st_mode & 0o077 == 0


def test_two_processes_that_migrate_at_once_both_succeed(empty_database_url: str) -> None:
    command = [
        sys.executable,
        "-c",
        "import sys; from holdfast.kernel.database.migrate import upgrade; upgrade(sys.argv[1])",
        empty_database_url,
    ]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    errors = [process.communicate(timeout=60)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], errors
    require_current(empty_database_url)


def test_both_databases_have_the_same_queries_with_the_same_parameters() -> None:
    sqlite, postgres = load_queries("sqlite", all_sql()), load_queries("postgres", all_sql())
    assert set(sqlite) - {"add_items"} == set(postgres) - {"claim_arrivals", "enqueue"}
    batches = {"add_outcomes", "replace_outcomes", "add_attempts"}
    batches |= {name for name, query in postgres.items() if query.columns}
    for name in set(sqlite) & set(postgres) - batches:
        assert set(sqlite[name].parameters) == set(postgres[name].parameters), name
