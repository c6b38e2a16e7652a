"""What a request with an idempotency key made, noted in the transaction that makes it."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.errors import UnfitState
from holdfast.store.driver import Transaction


class RequestKey(NamedTuple):
    """Two requests with the same key are one request. `content` identifies an uploaded file: it is
    known only after the upload."""

    user_name: str
    key: str
    content: str = ""


async def note_made(tx: Transaction, request: RequestKey | None, made: int) -> None:
    """Of two transactions that carry out the same request, one commits."""
    if request is None:
        return
    content = f" {request.content}" if request.content else ""
    params = {**request._asdict(), "content": content, "made": str(made)}
    if not await tx.take("note_made", params):
        raise UnfitState("the request with this key has just been answered", "Send it again.")
