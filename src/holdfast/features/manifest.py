"""What a feature gives: the modules with its routes, pages, commands and chores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple


class Command(NamedTuple):
    module: str
    line: str  # its text in `holdfast --help`, short enough for one line


@dataclass(frozen=True, slots=True)
class Manifest:
    """Names modules in the feature's folder. They are imported only by the process that needs them,
    so that `holdfast --help` loads no web server."""

    routes: tuple[str, ...] = ()  # each has a `router`
    pages: tuple[str, ...] = ()  # each has a `router`
    commands: Mapping[str, Command] = field(default_factory=dict)  # each has `register(app)`
    chores: tuple[str, ...] = ()  # each has `chores(parts, settings)`, for workers and timers


#: Each imports only those before it; a test checks it.
FEATURES = (
    "accounts",
    "switches",
    "gates",
    "library",
    "jobs",
    "overview",
    "audit",
    "schedules",
    "dead_letters",
    "rulings",
    "items",
    "exports",
    "bulk",
    "ingestion",
    "deletion",
)


def manifests() -> Iterator[tuple[str, Manifest]]:
    for name in FEATURES:
        folder = f"holdfast.features.{name}"
        yield folder, import_module(folder).MANIFEST


def routers_of(kind: str) -> list[Any]:
    """Imports the `routes` or `pages` of every feature and returns their routers."""
    return [
        import_module(f"{folder}.{module}").router
        for folder, manifest in manifests()
        for module in getattr(manifest, kind)
    ]


def feature_chores(settings: Any) -> list[Callable[[Any], Any]]:
    """Returns what makes the chores of each feature out of the parts of upkeep."""
    return [
        partial(import_module(f"{folder}.{module}").chores, settings=settings)
        for folder, manifest in manifests()
        for module in manifest.chores
    ]
