"""Updates the search index in the background: a page can be read before it can be found."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.pipeline import Tx
from holdfast.text_search import TextIndex

PAGES = TextIndex("meetings_search")


async def enqueue(tx: Tx, collection: tuple[int, str], upstream_ids: Sequence[str]) -> None:
    """Marks pages whose current words are not in the index yet."""
    if upstream_ids:
        municipality_id, document_type = collection
        batch = {"municipality_id": municipality_id, "document_type": document_type}
        await PAGES.enqueue(tx, {**batch, "upstream_ids": list(upstream_ids)})
