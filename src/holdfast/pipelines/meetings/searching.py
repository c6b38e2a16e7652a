"""The index of words, kept up in the background: a page can be read before it can be found."""

from __future__ import annotations

import orjson

from holdfast.pipeline import Tx


async def index_some(tx: Tx) -> bool:
    """Indexes the pages that one settlement wrote; False when all are indexed."""
    found = await tx.fetch("next_meeting_unindexed")
    if not found:
        return False
    row_id, municipality_id, document_type, upstream_ids = found[0]
    wanted = {"municipality_id": municipality_id, "document_type": document_type}
    pages = await tx.fetch(
        "meeting_pages_by_upstream", {**wanted, "ids": orjson.loads(upstream_ids)}
    )
    ids = {"ids": sorted(page[0] for page in pages)}
    await tx.take("unindex_meeting_pages", ids)
    await tx.take("index_meeting_pages", ids)
    await tx.take("drop_meeting_unindexed", {"id": row_id})
    return True
