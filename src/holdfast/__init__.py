"""Holdfast: pull large sets of records from places that fail, and lose nothing."""

from holdfast.errors import Category, ErrorCode, Failed, NotFound, Retry, RetryClass, Skip
from holdfast.model import Item, ItemStatus, Job, JobState, Lane, Outcome, Page, Record
from holdfast.options import Option
from holdfast.pipeline import Context, Dedupe, Gate, Pipeline, Settled, Tx, pipeline

__all__ = [
    "Category",
    "Context",
    "Dedupe",
    "ErrorCode",
    "Failed",
    "Gate",
    "Item",
    "ItemStatus",
    "Job",
    "JobState",
    "Lane",
    "NotFound",
    "Option",
    "Outcome",
    "Page",
    "Pipeline",
    "Record",
    "Retry",
    "RetryClass",
    "Settled",
    "Skip",
    "Tx",
    "pipeline",
]
__version__ = "0.1.0"
