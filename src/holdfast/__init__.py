"""Holdfast: process large sets of records from unreliable sources without losing any."""

from typing import TYPE_CHECKING, Any

from holdfast.errors import (
    Category,
    ErrorCode,
    Failed,
    ItemError,
    NotFound,
    Retry,
    RetryClass,
    Skip,
    UserError,
)
from holdfast.loader import Loader
from holdfast.model import (
    Item,
    ItemStatus,
    Job,
    JobState,
    Lane,
    NothingYet,
    Outcome,
    Page,
    Record,
    Schedule,
    StreamStatus,
)
from holdfast.options import Option
from holdfast.orders import (
    Act,
    Conclusion,
    Mark,
    Planned,
    Reopen,
    Resume,
    Start,
    Unproven,
    Verified,
)
from holdfast.pipeline import (
    Backoff,
    Context,
    Dedupe,
    Done,
    Gate,
    ItemEvidence,
    Pipeline,
    Settled,
    Tx,
    pipeline,
)
from holdfast.rulings import Ruled, Ruling, RulingKind

if TYPE_CHECKING:
    from holdfast_client import Enqueued, aenqueue, enqueue

__all__ = [
    "Act",
    "Backoff",
    "Category",
    "Conclusion",
    "Context",
    "Dedupe",
    "Done",
    "Enqueued",
    "ErrorCode",
    "Failed",
    "Gate",
    "Item",
    "ItemError",
    "ItemEvidence",
    "ItemStatus",
    "Job",
    "JobState",
    "Lane",
    "Loader",
    "Mark",
    "NotFound",
    "NothingYet",
    "Option",
    "Outcome",
    "Page",
    "Pipeline",
    "Planned",
    "Record",
    "Reopen",
    "Resume",
    "Retry",
    "RetryClass",
    "Ruled",
    "Ruling",
    "RulingKind",
    "Schedule",
    "Settled",
    "Skip",
    "Start",
    "StreamStatus",
    "Tx",
    "Unproven",
    "UserError",
    "Verified",
    "aenqueue",
    "enqueue",
    "pipeline",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Imports on first use: only a program that adds records needs the database libraries."""
    if name in ("Enqueued", "aenqueue", "enqueue"):
        import holdfast_client

        globals()[name] = value = getattr(holdfast_client, name)
        return value
    raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
