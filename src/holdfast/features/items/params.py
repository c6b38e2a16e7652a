"""What requests for lists of items say: the filter, the page and its cursor."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from fastapi import Query

from holdfast.features.items.items import ItemFilter
from holdfast.features.items.value_search import Value
from holdfast.model import Job
from holdfast.server.cursors import Cursors
from holdfast.server.dependencies import Parts
from holdfast.server.problems import Malformed

Statuses = Annotated[
    str, Query(description="E.g. PENDING,PROCESSING; all if empty.", max_length=100)
]


PageSize = Annotated[int, Query(alias="pageSize", ge=1, le=1000)]


After = Annotated[str | None, Query(description="The `next` of the previous page.")]


From = Annotated[datetime | None, Query(alias="from", description="Changed at or after.")]


To = Annotated[datetime | None, Query(alias="to", description="Changed at or before.")]


Code = Annotated[str | None, Query(description="An error code.", pattern=r"^[A-Za-z0-9_.-]{1,60}$")]


Values = Annotated[
    list[str],
    Query(
        alias="value",
        max_length=10,
        description="A column and its value, e.g. `brand:acme`: an exact match, ignoring case; `*` "
        "matches anything. If repeated, all must match.",
    ),
]


RulingWord = Annotated[
    str,
    Query(
        max_length=40,
        description="Only items about which a decision counts: choose, edit, reject or any.",
    ),
]


#: Offsets are not supported: they get slower the deeper they go.
NoOffset = Annotated[str | None, Query(include_in_schema=False)]


def item_cursors(
    parts: Parts,
    list_name: str,
    person: str,
    job: Job,
    filter: ItemFilter,
    values: Sequence[Value],
) -> Cursors:
    return Cursors(parts.secret, list_name, person, items_shown(job.id, filter, values))


def items_shown(job_id: int, filter: ItemFilter, values: Sequence[Value] = ()) -> dict[str, Any]:
    """Returns what a cursor is bound to, so that it fits no other list."""
    words = [
        filter.statuses, filter.code, filter.since, filter.until, filter.rulings, *values,
    ]  # fmt: skip
    return {"job": job_id, "filter": [str(word) for word in words]}


def refuse_offsets(page: str | None, sort: str | None) -> None:
    if page is not None or sort is not None:
        raise Malformed(
            "`page` and `sort` are not supported",
            "Use `after` with the `next` of the previous page.",
        )
