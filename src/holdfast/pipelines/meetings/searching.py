"""The index of words, kept up in the background: a page can be read before it can be found."""

from __future__ import annotations

import orjson

from holdfast.pipeline import Tx


async def index_some(tx: Tx) -> bool:
    """Indexes the pages that one settlement wrote; False when all are indexed."""
    found = await tx.fetch("meetings_search_next")
    if not found:
        return False
    row_id, municipality_id, document_type, upstream_ids = found[0]
    wanted = {"municipality_id": municipality_id, "document_type": document_type}
    pages = await tx.fetch(
        "meetings_search_ids", {**wanted, "ids": orjson.loads(upstream_ids)}
    )
    ids = {"ids": sorted(page[0] for page in pages)}
    await tx.take("meetings_search_remove", ids)
    await tx.take("meetings_search_add", ids)
    await tx.take("meetings_search_dequeue", {"id": row_id})
    return True
