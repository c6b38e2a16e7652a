"""Reference pages over the core and every installed extension, in Markdown.

`python -m holdfast.cli.references settings` prints one; so do `events` and `metrics`.
"""

from __future__ import annotations

import sys

from holdfast.cli.composition import declare_metrics
from holdfast.extension import installed, merged_events
from holdfast.observe import log, metrics
from holdfast.settings import installed_groups
from holdfast.settings import reference as settings


def events_page() -> str:
    return log.reference(merged_events(log.EVENTS, installed().values()))


def metrics_page() -> str:
    declared = metrics.Metrics()
    for extension in installed().values():
        declare_metrics(declared, extension)
    return metrics.reference(declared.described)


def settings_page() -> str:
    return settings.reference(installed_groups())


PAGES = {"events": events_page, "metrics": metrics_page, "settings": settings_page}

if __name__ == "__main__":
    print(PAGES[sys.argv[1]](), end="")
