"""Opens a store: the verbs of the engine, grouped by what they are about."""

from __future__ import annotations

import random
import secrets
from dataclasses import dataclass

from holdfast.clock import Clock, SystemClock, system_random
from holdfast.kernel.arrivals.enqueue import Additions
from holdfast.kernel.arrivals.idempotency import TakenKeys
from holdfast.kernel.database.database import Database
from holdfast.kernel.database.driver import Driver, Fault, Observe, no_fault, no_observe
from holdfast.kernel.database.extension_folders import all_sql
from holdfast.kernel.database.names import DEFAULT_SCHEMA
from holdfast.kernel.database.postgres import open_postgres
from holdfast.kernel.database.queries import SqlFolder, load_queries, names_of
from holdfast.kernel.database.sqlite import open_sqlite
from holdfast.kernel.gates.table import GateTable
from holdfast.kernel.jobs.admission import NO_RULES, JobRules
from holdfast.kernel.jobs.audit import Audit
from holdfast.kernel.jobs.jobs import Jobs
from holdfast.kernel.jobs.plans import Plans
from holdfast.kernel.jobs.reads import Reads
from holdfast.kernel.jobs.samples import Samples
from holdfast.kernel.outbox.messages import Messages
from holdfast.kernel.outbox.nudges import Nudges
from holdfast.kernel.record.counters import CounterRows
from holdfast.kernel.record.ingest import Ingest
from holdfast.kernel.record.leases import Leases
from holdfast.kernel.record.outcomes import Outcomes
from holdfast.kernel.record.streams import StreamReads
from holdfast.kernel.worker.cache import Cache
from holdfast.kernel.worker.flags import Flags
from holdfast.kernel.worker.workers import Workers
from holdfast.pipeline import Fetch, Gate
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
    plans: Plans
    reads: Reads
    streams: StreamReads
    samples: Samples
    audit: Audit
    cache: Cache
    flags: Flags
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
        plans=Plans(database),
        reads=Reads(database),
        streams=StreamReads(database),
        samples=Samples(database),
        audit=Audit(database),
        cache=Cache(database),
        flags=Flags(database),
        counter_rows=CounterRows(database),
    )


def _new_token() -> str:
    return secrets.token_urlsafe(8)
