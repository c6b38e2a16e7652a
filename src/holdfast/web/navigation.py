"""What stands in the rail, and how a pipeline's package adds pages of its own.

A built-in pipeline's package may have a module `pages` with its views and one `PAGES`:

    PAGES = PagePack("meetings", router, Path(__file__).parent / "templates",
                     (Entry("meetings", "Meetings", "/meetings", "m"),))

It is added wherever the pipeline is served. Its templates are named `meetings/…` and extend
`layout.html`, whose block `head` takes a stylesheet of the pack's own; its views take a `Visitor`
and answer with `visit.page(…)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the rail. `key` is pressed after `g`; `icon` names a drawing in icons.html."""

    name: str
    label: str
    path: str
    key: str
    icon: str = "page"


ENTRIES = (
    Entry("overview", "Overview", "/", "o", "overview"),
    Entry("jobs", "Jobs", "/jobs", "j", "jobs"),
    Entry("pending", "Pending", "/pending", "p", "pending"),
    Entry("streams", "Streams", "/streams", "s", "streams"),
    Entry("gates", "Gates", "/gates", "g", "gates"),
    Entry("dead-letters", "Dead letters", "/dead-letters", "d", "dead"),
    Entry("schedules", "Schedules", "/schedules", "c", "schedules"),
    Entry("audit", "Audit", "/audit", "a", "audit"),
    Entry("settings", "Settings", "/settings", "e", "settings"),
)


@dataclass(frozen=True, slots=True)
class PagePack:
    """The pages of one pipeline's package."""

    name: str
    router: APIRouter
    templates: Path
    entries: Sequence[Entry] = ()
    api: APIRouter | None = None  # what the pages do, for programs
    static: Path | None = None  # served under /static/NAME
    streams: str = ""  # where its streams have pages of their own; each at PATH/ID


def rail(packs: Sequence[PagePack]) -> tuple[Entry, ...]:
    """The pipelines' own pages come after ours, before Settings."""
    added = [entry for pack in packs for entry in pack.entries]
    return (*ENTRIES[:-1], *added, ENTRIES[-1])
