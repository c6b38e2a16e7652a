"""The only place that talks to a database."""

from holdfast.store.decisions import DecisionRow
from holdfast.store.ingest import IngestPage, StreamLease
from holdfast.store.jobs import NewJob, NewStream
from holdfast.store.leases import Claimed
from holdfast.store.messages import DeadMessage, OutboxRow
from holdfast.store.outcomes import SaveFailed, Settlement
from holdfast.store.plans import Carried, Planner
from holdfast.store.reads import DueJob
from holdfast.store.store import Store, open_store
from holdfast_client.keys import NewItem

__all__ = [
    "Carried",
    "Claimed",
    "DeadMessage",
    "DecisionRow",
    "DueJob",
    "IngestPage",
    "NewItem",
    "NewJob",
    "NewStream",
    "OutboxRow",
    "Planner",
    "SaveFailed",
    "Settlement",
    "Store",
    "StreamLease",
    "open_store",
]
