"""Opens a store: the verbs of the engine, grouped by what they are about."""

from __future__ import annotations

import random
import secrets
from dataclasses import dataclass

from holdfast.clock import Clock, SystemClock, system_random
from holdfast.pipeline import Fetch, Gate
from holdfast.store.admission import NO_RULES, JobRules
from holdfast.store.audit import Audit
from holdfast.store.cache import Cache
from holdfast.store.counters import CounterRows
from holdfast.store.database import Database
from holdfast.store.deletion import Deletion
from holdfast.store.driver import Driver, Fault, Observe, no_fault, no_observe
from holdfast.store.enqueue import Additions
from holdfast.store.extension_folders import all_sql
from holdfast.store.flags import Flags
from holdfast.store.gates import GateTable
from holdfast.store.idempotency import TakenKeys
from holdfast.store.ingest import Ingest
from holdfast.store.jobs import Jobs
from holdfast.store.leases import Leases
from holdfast.store.messages import Messages
from holdfast.store.names import DEFAULT_SCHEMA
from holdfast.store.nudges import Nudges
from holdfast.store.outcomes import Outcomes
from holdfast.store.plans import Plans
from holdfast.store.postgres import open_postgres
from holdfast.store.queries import SqlFolder, load_queries, names_of
from holdfast.store.reads import Reads
from holdfast.store.retention import RetentionRows
from holdfast.store.samples import Samples
from holdfast.store.schedules import Schedules
from holdfast.store.sqlite import open_sqlite
from holdfast.store.streams import StreamReads
from holdfast.store.workers import Workers
from holdfast.urls import sqlite_file

_DEFAULT_GATE = Gate("", concurrency=8)


@dataclass(frozen=True, slots=True)
class Store:
    database: Database
    jobs: Jobs
    ingest: Ingest
    additions: Additions
    taken_keys: TakenKeys
    leases: Leases
    outcomes: Outcomes
    gates: GateTable
    messages: Messages
    nudges: Nudges
    workers: Workers
    schedules: Schedules
    plans: Plans
    reads: Reads
    streams: StreamReads
    samples: Samples
    audit: Audit
    cache: Cache
    flags: Flags
    deletion: Deletion
    retention: RetentionRows
    counter_rows: CounterRows

    @property
    def fetch(self) -> Fetch:
        """Reads with a named query, as extensions read their own tables."""
        return self.database.fetch

    async def close(self) -> None:
        await self.database.driver.close()


async def open_store(
    url: str,
    *,
    pool_size: int = 6,
    default_gate: Gate = _DEFAULT_GATE,
    rules: JobRules = NO_RULES,
    clock: Clock | None = None,
    rng: random.Random | None = None,
    fault: Fault = no_fault,
    observe: Observe = no_observe,
    sql: tuple[SqlFolder, ...] | None = None,
    schema: str = DEFAULT_SCHEMA,
) -> Store:
    """Opens a store.

    `rules`: limits for new jobs. `sql`: the folders of named queries; by default those of the core
    and of every installed extension. `schema`: where the tables are, see names.py."""
    clock = clock or SystemClock()
    rng = rng or system_random()
    folders = all_sql() if sql is None else sql
    names = names_of(folders, schema)
    driver: Driver
    file = sqlite_file(url)
    if file is not None:
        queries = load_queries("sqlite", folders, schema)
        driver = await open_sqlite(file, queries, names, rules, clock, fault, observe)
    else:
        queries = load_queries("postgres", folders, schema)
        driver = await open_postgres(url, queries, names, pool_size, rules, clock, fault, observe)
    database = Database(driver, rng)
    return Store(
        database=database,
        jobs=Jobs(database),
        ingest=Ingest(database, _new_token),
        additions=Additions(database),
        leases=Leases(database, _new_token, clock),
        taken_keys=TakenKeys(database),
        outcomes=Outcomes(database),
        gates=GateTable(database, rng, default_gate),
        messages=Messages(database),
        nudges=Nudges(database),
        workers=Workers(database),
        schedules=Schedules(database),
        plans=Plans(database),
        reads=Reads(database),
        streams=StreamReads(database),
        samples=Samples(database),
        audit=Audit(database),
        cache=Cache(database),
        flags=Flags(database),
        deletion=Deletion(database),
        retention=RetentionRows(database),
        counter_rows=CounterRows(database),
    )


def _new_token() -> str:
    return secrets.token_urlsafe(8)
