"""Exports all captures as one WARC file, in the order in which they were made."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from typing import Any

import orjson

from holdfast import __version__
from holdfast.errors import UnfitState
from holdfast.pipeline import Fetch
from holdfast.stored_files import PipelineFiles
from holdfast_regulations import bodies
from holdfast_regulations.verifying import choice
from holdfast_regulations.warc import Capture, WarcWriter

_AT_ONCE = 200


async def warc_parts(
    fetch: Fetch,
    files: PipelineFiles,
    filename: str,
    written_at: datetime,
    sources: Sequence[str] | None = None,
    counted: Callable[[], object] = lambda: None,
) -> AsyncIterator[bytes]:
    """Yields the parts of the file; `counted` is called for each capture."""
    writer = WarcWriter(f"holdfast/{__version__}")
    for part in writer.info(filename, written_at):
        yield part
    after = 0
    while rows := await _page(fetch, sources, after):
        for row in rows:
            capture = _capture(row)
            body = b"" if writer.is_revisit(capture) else await _body(fetch, files, row)
            for part in writer.record(capture, [body]):
                yield part
            counted()
        after = int(rows[-1]["id"])


async def _page(fetch: Fetch, sources: Sequence[str] | None, after: int) -> list[Any]:
    params = {"after": after, "limit": _AT_ONCE, **choice(sources)}
    return list(await fetch("regulations_captures_page", params))


async def _body(fetch: Fetch, files: PipelineFiles, capture: Any) -> bytes:
    rows = await fetch("regulations_body", {"sha256": capture["sha256"]})
    try:
        return await bodies.load(rows[0], files)
    except bodies.DamagedBody as damaged:
        raise UnfitState(
            f"the body of {capture['url']} is damaged: {damaged}",
            "Restore it from a backup, or leave its source out with --source."
            " `holdfast regulations verify` names all that are damaged.",
        ) from damaged


def _capture(row: Any) -> Capture:
    captured_at = row["captured_at"]
    if isinstance(captured_at, str):
        captured_at = datetime.fromisoformat(captured_at)
    headers = row["headers"]
    pairs = orjson.loads(headers) if isinstance(headers, str | bytes) else headers
    return Capture(
        id=str(row["id"]),
        url=row["url"],
        captured_at=captured_at,
        status=int(row["status"]),
        headers=[(name, value) for name, value in pairs],
        digest=bytes.fromhex(row["sha256"]),
        length=int(row["size"]),
        final_url=row["final_url"],
    )
