"""Opens the console of a store: what people read and order, grouped by noun."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.console.adapters import Adapters
from holdfast.console.audit import AuditLog
from holdfast.console.dead_letters import DeadLetters
from holdfast.console.exports import Exports
from holdfast.console.files import Files
from holdfast.console.items import Items
from holdfast.console.jobs import JobReads
from holdfast.console.nonces import Nonces
from holdfast.console.operations import Operations
from holdfast.console.people import People
from holdfast.console.quotas import NO_LIMITS, Amounts, Quotas
from holdfast.console.ranges import RangeReads
from holdfast.console.rulings import Rulings
from holdfast.console.samples import SampleReads
from holdfast.console.secrets import Secrets
from holdfast.store import Store
from holdfast.store.streams import StreamReads


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
    )
