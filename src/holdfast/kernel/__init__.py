"""What a record needs, from its source to its outcome."""

from holdfast.kernel.jobs.jobs import NewJob, NewStream
from holdfast.kernel.jobs.plans import Carried, Planner
from holdfast.kernel.jobs.reads import DueJob
from holdfast.kernel.outbox.messages import DeadMessage, OutboxRow
from holdfast.kernel.record.decisions import DecisionRow
from holdfast.kernel.record.ingest import IngestPage, StreamLease
from holdfast.kernel.record.leases import Claimed
from holdfast.kernel.record.outcomes import SaveFailed, Settlement
from holdfast.kernel.store import Store, open_store
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
