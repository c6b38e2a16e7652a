"""The pages of posts: projects, errors of crawlers, batches and messages."""

from __future__ import annotations

from pathlib import Path

from holdfast.server.navigation import Entry, PagePack
from holdfast_posts.web.views import router

_HERE = Path(__file__).parent
_SPEECH = "M2 3h12v8H8l-4 3v-3H2z"

PACK = PagePack(
    "posts",
    router,
    _HERE / "templates",
    (Entry("posts", "Posts", "/posts", "b", _SPEECH),),
    static=_HERE / "static",
)
