"""Builds what deletes, from the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.cli.composition import file_store
from holdfast.features.deletion.deleter import Deleter
from holdfast.features.deletion.retention import Retention
from holdfast.features.deletion.rules import Deletions
from holdfast.kernel import Store

if TYPE_CHECKING:
    from holdfast.configuration import Settings
    from holdfast.features.console import Console


def deleter_of(settings: Settings, store: Store, log: Any) -> Deleter:
    files = file_store(settings)
    return Deleter(store, files.delete, log, files.list)


def deletions_of(settings: Settings, console: Console, log: Any) -> Deletions:
    return Deletions(console, deleter_of(settings, console.store, log), log)


def retention_of(settings: Settings, store: Store, log: Any) -> Retention:
    return Retention(store, deleter_of(settings, store, log), settings.retention, log)
