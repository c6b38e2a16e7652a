"""The pages and routes of linker: projects, tasks and review."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter

from holdfast.server.navigation import Entry, PagePack
from holdfast_linker.web.api import datasets, reconciling, tokens
from holdfast_linker.web.api import projects as projects_api
from holdfast_linker.web.api import tasks as tasks_api
from holdfast_linker.web.deleting import finish_deletions
from holdfast_linker.web.views import datasets as dataset_pages
from holdfast_linker.web.views import projects, review

_HERE = Path(__file__).parent
_CHAIN = (
    "M6.5 9.5 9.5 6.5M7 4.5l1.5-1.5a3 3 0 0 1 4.5 4.5L11.5 9M9 11.5 7.5 13A3 3 0 0 1 3 8.5L4.5 7"
)


def _together(*routers: APIRouter) -> APIRouter:
    whole = APIRouter()
    for router in routers:
        whole.include_router(router)
    return whole


PACK = PagePack(
    "linker",
    _together(projects.router, dataset_pages.router, review.router),
    _HERE / "templates",
    (Entry("linker", "Linker", "/linker", "l", _CHAIN),),
    api=_together(
        projects_api.router, datasets.router, tasks_api.router, tokens.router, reconciling.router
    ),
    uploads=(datasets.PATH,),
    machines=("/api/projects/", "/reconcile/"),
    static=_HERE / "static",
    look=finish_deletions,
)
