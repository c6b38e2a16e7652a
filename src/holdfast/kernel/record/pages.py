"""Converts what a pipeline's `discover` yields to rows."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import orjson

from holdfast.errors import DiscoveryError
from holdfast.kernel import IngestPage, NewItem, StreamLease
from holdfast.model import NothingYet, Page, Record
from holdfast.pipeline import Context, Pipeline
from holdfast_client.json_depth import DEEPEST, is_too_deep
from holdfast_client.records import content_hash
from holdfast_client.storable import storable_key

#: A page, or the sign that there is none now.
Yielded = IngestPage | NothingYet


async def discovered_pages(
    pipeline: Pipeline, lease: StreamLease, ctx: Context, max_input_bytes: int
) -> AsyncGenerator[Yielded]:
    """Yields the pages of the pipeline's `discover`, starting at the stream's cursor."""
    source = lease.source
    if lease.fingerprint != pipeline.fingerprint(source, ctx.options):
        raise DiscoveryError(f"the query behind {source} changed since its cursor was stored")
    cursor = lease.cursor or {"page": None, "skip": 0}
    skip = cursor["skip"]
    async with aclosing(pipeline.discover(source, cursor["page"], ctx)) as pages:  # type: ignore[type-var]
        async for page in pages:
            if isinstance(page, NothingYet):
                yield page
                return
            yield _ingest_page(pipeline, page, skip, max_input_bytes)
            if page.end:
                return
            skip = 0


def _ingest_page(pipeline: Pipeline, page: Page, skip: int, max_input_bytes: int) -> IngestPage:
    if not page.end and page.next_cursor is None:
        raise DiscoveryError("a page has neither a next cursor nor an end signal")
    items = [new_item(pipeline, record, max_input_bytes) for record in page.records[skip:]]
    return IngestPage(
        items,
        page.next_cursor,
        page.end,
        page.expected_count,
        notes=page.notes,
        skipped=min(skip, len(page.records)),
    )


def new_item(pipeline: Pipeline, record: Record, max_input_bytes: int) -> NewItem:
    try:
        encoded = orjson.dumps(record.input)
    except (TypeError, ValueError) as error:
        raise DiscoveryError(f"a record is not JSON: {error}") from error
    if len(encoded) > max_input_bytes:
        raise DiscoveryError(
            f"a record has {len(encoded):,} bytes, more than HOLDFAST_MAX_INPUT_BYTES="
            f"{max_input_bytes}; raise it and resume the job"
        )
    text = encoded.decode()
    if is_too_deep(text):
        raise DiscoveryError(f"a record nests deeper than {DEEPEST} levels")
    key = record.key or (pipeline.key(record.input) if pipeline.dedupe else None)
    key = storable_key(key)
    return NewItem(text, key, _version(record, encoded) if key else "")


def _version(record: Record, encoded: bytes) -> str:
    if record.version is None:
        return content_hash(encoded)
    return content_hash(record.version.encode()) if record.version else ""
