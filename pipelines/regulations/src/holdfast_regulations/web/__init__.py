"""The pages and routes of regulations: sources, runs, documents, search."""

from __future__ import annotations

from pathlib import Path

from holdfast.server.navigation import Entry, PagePack
from holdfast_regulations.web import api, views

_HERE = Path(__file__).parent
_SCALES = "M8 1.5v13M4 14.5h8M3 4h10M3 4 1 9h4zM13 4l-2 5h4zM1 9a2 2 0 0 0 4 0M11 9a2 2 0 0 0 4 0"

PACK = PagePack(
    "regulations",
    views.router,
    _HERE / "templates",
    (Entry("regulations", "Regulations", "/regulations", "r", _SCALES),),
    api=api.router,
    static=_HERE / "static",
)
