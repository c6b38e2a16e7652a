"""Opens the console of a store: what people read and order, grouped by noun."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.features.accounts.nonces import Nonces
from holdfast.features.accounts.people import People
from holdfast.features.accounts.quotas import NO_LIMITS, Amounts, Quotas
from holdfast.features.accounts.secrets import Secrets
from holdfast.features.audit.reads import AuditLog
from holdfast.features.bulk.operations import Operations
from holdfast.features.dead_letters.rules import DeadLetters
from holdfast.features.exports.exports import Exports
from holdfast.features.ingestion.adapters import Adapters
from holdfast.features.items.items import Items
from holdfast.features.items.ranges import RangeReads
from holdfast.features.jobs.reads import JobReads
from holdfast.features.jobs.samples import SampleReads
from holdfast.features.library.files import Files
from holdfast.features.rulings.rules import Rulings
from holdfast.features.schedules.table import Schedules
from holdfast.kernel import Store
from holdfast.kernel.record.streams import StreamReads


@dataclass(frozen=True, slots=True)
class Console:
    store: Store
    people: People
    jobs: JobReads
    items: Items
    ranges: RangeReads
    rulings: Rulings
    streams: StreamReads
    dead_letters: DeadLetters
    audit: AuditLog
    samples: SampleReads
    files: Files
    exports: Exports
    operations: Operations
    secrets: Secrets
    quotas: Quotas
    nonces: Nonces
    adapters: Adapters
    schedules: Schedules


def open_console(store: Store, limits: Amounts = NO_LIMITS) -> Console:
    """Uses the store's connections: closing the store closes it."""
    database = store.database
    return Console(
        store=store,
        people=People(database, limits),
        jobs=JobReads(store),
        items=Items(database),
        ranges=RangeReads(database),
        rulings=Rulings(database),
        streams=store.streams,
        dead_letters=DeadLetters(database),
        audit=AuditLog(database),
        samples=SampleReads(database),
        files=Files(database, limits),
        exports=Exports(database, limits),
        operations=Operations(database, limits),
        secrets=Secrets(database),
        quotas=Quotas(database, limits),
        nonces=Nonces(database),
        adapters=Adapters(database),
        schedules=Schedules(database),
    )
