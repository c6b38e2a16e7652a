"""The pages of catalog."""

from __future__ import annotations

from pathlib import Path

from holdfast.server.navigation import Entry, PagePack
from holdfast_catalog.web.views import router

_HERE = Path(__file__).parent
_TAG = "M1.5 8.5v-7h7l6 6-7 7zM4.5 5.5a1 1 0 1 0 .01 0"

PACK = PagePack(
    "catalog",
    router,
    _HERE / "templates",
    (Entry("catalog", "Catalog", "/catalog", "t", _TAG),),
    static=_HERE / "static",
    item="item.html",
)
