"""The only place that talks to a database."""

from holdfast.store.ingest import IngestPage, NewItem, StreamLease
from holdfast.store.jobs import NewJob, NewStream
from holdfast.store.leases import Claimed
from holdfast.store.messages import DeadMessage, OutboxRow, TurnJob
from holdfast.store.outcomes import DecisionRow, SaveFailed, Settlement
from holdfast.store.plans import Carried, Ending, Orders
from holdfast.store.store import Store, open_store

__all__ = [
    "Carried",
    "Claimed",
    "DeadMessage",
    "DecisionRow",
    "Ending",
    "IngestPage",
    "NewItem",
    "NewJob",
    "NewStream",
    "Orders",
    "OutboxRow",
    "SaveFailed",
    "Settlement",
    "Store",
    "StreamLease",
    "TurnJob",
    "open_store",
]
