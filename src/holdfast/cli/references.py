"""Prints parts of the reference from the code, in Markdown.

`python -m holdfast.cli.references settings` prints the page of the core's settings; `events` and
`metrics` print those. Given the name of an extension instead, it prints the tables of its settings,
metrics and events, for a page in its `docs` folder.
"""

from __future__ import annotations

import sys

from holdfast.cli.composition import declare_metrics
from holdfast.configuration import sections
from holdfast.extension import Extension, installed
from holdfast.observe import log, metrics
from holdfast.settings import Group
from holdfast.settings import reference as settings


def events_page() -> str:
    return log.reference(log.EVENTS)


def metrics_page() -> str:
    return metrics.reference(metrics.Metrics().described)


def settings_page() -> str:
    return settings.core_page(sections())


def extension_tables(extension: Extension) -> dict[str, str]:
    """Returns the extension's tables by heading, without empty ones."""
    tables = {}
    group = Group(extension)
    if group.settings:
        tables["Settings"] = settings.extension_table(group)
    if extension.metrics is not None:
        tables["Metrics"] = metrics.table(declared_metrics(extension))
    if extension.events:
        tables["Log events"] = log.table(extension.events)
    return tables


def declared_metrics(extension: Extension) -> list[metrics.Described]:
    registry = metrics.Metrics()
    core = len(registry.described)
    declare_metrics(registry, extension)
    return registry.described[core:]


PAGES = {"events": events_page, "metrics": metrics_page, "settings": settings_page}


def _printed(name: str) -> str:
    if name in PAGES:
        return PAGES[name]()
    tables = extension_tables(installed()[name])
    return "\n".join(f"## {heading}\n\n{table}" for heading, table in tables.items())


if __name__ == "__main__":
    print(_printed(sys.argv[1]), end="")
