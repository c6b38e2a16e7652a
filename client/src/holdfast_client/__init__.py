"""Adds records to Holdfast from an application, in the application's own transaction."""

from holdfast_client.adding import Enqueued
from holdfast_client.connections import aenqueue, enqueue
from holdfast_client.errors import HoldfastError, NotThere, SchemaError, UnfitState, UserError

__all__ = [
    "Enqueued",
    "HoldfastError",
    "NotThere",
    "SchemaError",
    "UnfitState",
    "UserError",
    "aenqueue",
    "enqueue",
]
