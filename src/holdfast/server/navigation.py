"""The entries of the navigation, and how an extension adds its own pages and routes.

An extension's `web` part is a PagePack:

    PACK = PagePack(
        "weather",
        router,
        Path(__file__).parent / "templates",
        (Entry("weather", "Weather", "/weather", "w", icon="M2 8h12M8 2v12"),),
    )

It is served wherever the extension's pipeline is. Its templates are named `weather/...` and extend
`layout.html`, which has a block `head` for a stylesheet of the pack. Its views take a `Visitor` and
return `visit.page(...)`; its API routes take `PartsOf`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter

from holdfast.server.dependencies import Parts

_SHEET = "M4 1.5h8v13H4zM6.5 5h3M6.5 8h3"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the navigation. `key` is pressed after `g`."""

    name: str
    label: str
    path: str
    key: str
    icon: str = _SHEET  # an SVG path in a 16 by 16 box, drawn as a line


ENTRIES = (
    Entry(
        "overview", "Overview", "/", "o", "M2 13.5h12M3.5 11V8M6.5 11V4.5M9.5 11V6.5M12.5 11V2.5"
    ),
    Entry("jobs", "Jobs", "/jobs", "j", "M2 2.5h12v4H2zM2 9.5h12v4H2z"),
    Entry(
        "pending", "Pending", "/pending", "p", "M14 8A6 6 0 1 1 2 8a6 6 0 1 1 12 0M8 4.5V8l2.3 1.8"
    ),
    Entry(
        "streams",
        "Streams",
        "/streams",
        "s",
        "M1.5 5c2-2 4.3-2 6.5 0s4.5 2 6.5 0M1.5 11c2-2 4.3-2 6.5 0s4.5 2 6.5 0",
    ),
    Entry(
        "gates",
        "Gates",
        "/gates",
        "g",
        "M2.5 14V4.5M13.5 14V4.5M1.5 4.5h13M5.5 14V7.5M8 14V7.5M10.5 14V7.5M2.5 7.5h11M4 2h8",
    ),
    Entry(
        "dead-letters",
        "Dead letters",
        "/dead-letters",
        "d",
        "M1.5 3.5h13v9h-13zM1.5 4.5 8 9l6.5-4.5",
    ),
    Entry(
        "ingestion", "Ingestion", "/ingestion", "i", "M8 1.5v8M4.5 6.5 8 10l3.5-3.5M2 11v3h12v-3"
    ),
    Entry("schedules", "Schedules", "/schedules", "c", "M2 3h12v11H2zM2 6.5h12M5 1.5v3M11 1.5v3"),
    Entry("audit", "Audit", "/audit", "a", "M4 1.5h6l3 3v10H4zM10 1.5v3h3M6.5 8h4M6.5 11h4"),
    Entry(
        "settings",
        "Settings",
        "/settings",
        "e",
        "M2 4.5h7M12 4.5h2M2 11.5h2M7 11.5h7M12 4.5a1.5 1.5 0 1 1-3 0 1.5 1.5 0 1 1 3 0"
        "M7 11.5a1.5 1.5 0 1 1-3 0 1.5 1.5 0 1 1 3 0",
    ),
)


@dataclass(frozen=True, slots=True)
class PagePack:
    """The pages and routes of one extension."""

    name: str
    router: APIRouter
    templates: Path
    entries: Sequence[Entry] = ()
    api: APIRouter | None = None  # routes for programs
    machines: tuple[str, ...] = ()  # prefixes besides /api/ that respond as an API; each ends in /
    static: Path | None = None  # served under /static/NAME
    streams: str = ""  # path of the pack's own pages of streams, each at PATH/ID
    item: str = ""  # template that the page of an item includes; it has `job`, `item`, `decision`
    uploads: tuple[str, ...] = ()  # paths of routes that take a file in a form, such as "/x/{id}/y"
    #: Background work, called every few seconds in every process that serves pages.
    look: Callable[[Parts], Awaitable[None]] | None = None


def rail(packs: Sequence[PagePack]) -> tuple[Entry, ...]:
    """Returns the navigation; pages of extensions come after those of the core, before Settings."""
    added = [entry for pack in packs for entry in pack.entries]
    return (*ENTRIES[:-1], *added, ENTRIES[-1])
