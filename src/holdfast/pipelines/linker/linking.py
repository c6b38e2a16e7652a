"""The links of a project, read in batches: for QuickStatements."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import orjson

from holdfast.pipeline import Fetch
from holdfast.pipelines.linker.quickstatements import Link, Style, statements
from holdfast.pipelines.linker.stored_forms import entry_from
from holdfast.pipelines.linker.tasks import TaskState

_PAGE = 500


async def links_of(fetch: Fetch, project_id: int) -> AsyncGenerator[list[Link]]:
    """Entries that were linked, by a person or without one, and those that people said are new."""
    position = {"job_id": 0, "seq": 0}
    while rows := await fetch(
        "linker_links", {"project_id": project_id, "limit": _PAGE, **position}
    ):
        yield [
            Link(entry_from(orjson.loads(row["entry"]), row["key"]), row["item"])
            for row in rows
            if row["item"] is not None or row["state"] == TaskState.REVIEWED
        ]
        position = {"job_id": rows[-1]["job_id"], "seq": rows[-1]["seq"]}


async def statement_lines(fetch: Fetch, project_id: int, style: Style) -> AsyncGenerator[str]:
    async for links in links_of(fetch, project_id):
        for line in statements(links, style):
            yield f"{line}\n"
