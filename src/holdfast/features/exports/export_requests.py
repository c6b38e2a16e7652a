"""Exports as people request them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.errors import UserError
from holdfast.features.exports.exports import Export, NewExport
from holdfast.features.items.item_filters import NO_FILTER, stored_filter
from holdfast.features.items.items import ItemFilter
from holdfast.features.items.value_search import Value
from holdfast.kernel.arrivals.idempotency import RequestKey

if TYPE_CHECKING:
    from holdfast.features.console import Console

FORMATS = {"xlsx": "Excel (XLSX)", "csv": "CSV", "jsonl": "JSON lines", "json": "JSON"}


@dataclass(frozen=True, slots=True)
class ExportRequest:
    job_id: int
    format: str
    filter: ItemFilter = NO_FILTER
    values: Sequence[Value] = ()
    with_input: bool = False
    key: RequestKey | None = None


async def request_export(console: Console, request: ExportRequest, owner: str) -> Export:
    if request.format not in FORMATS:
        raise UserError(f"there is no format {request.format!r}", f"Formats: {', '.join(FORMATS)}.")
    narrowed = stored_filter(request.filter, request.values)
    new = NewExport(
        owner_id=owner,
        job_id=request.job_id,
        format=request.format,
        statuses=[str(status) for status in request.filter.statuses],
        with_input=request.with_input,
        narrowed={name: value for name, value in narrowed.items() if value},
        request=request.key,
    )
    return await console.exports.export(await console.exports.add_export(new))
