"""Requests with an idempotency key: each is answered once."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.store.database import Database, verb
from holdfast.store.driver import Row, Transaction


class Answered(NamedTuple):
    """An earlier request with the same key. Without a status it is still being answered, or its
    process died; `made` is the id of what it had made by then, and `content` its file."""

    fingerprint: str
    content: str
    status: int | None
    body: str | None
    made: int | None


class Idempotency:
    def __init__(self, database: Database) -> None:
        self._database = database

    @verb
    async def begin_request(
        self, tx: Transaction, user_name: str, key: str, fingerprint: str
    ) -> Answered | None:
        """None: the caller answers it. Otherwise the earlier request and its answer."""
        params = {"user_name": user_name, "key": key, "fingerprint": fingerprint}
        if await tx.take("begin_request", params):
            return None
        rows = await tx.fetch("request", params)
        return _answered(rows[0]) if rows else Answered(fingerprint, "", None, None, None)

    @verb
    async def renew_request(self, tx: Transaction, user_name: str, key: str) -> None:
        """Every few seconds while it is answered: a silent one may be taken over."""
        await tx.run("renew_request", {"user_name": user_name, "key": key})

    @verb
    async def answer_request(
        self, tx: Transaction, user_name: str, key: str, status: int, text: str
    ) -> None:
        params = {"user_name": user_name, "key": key, "status": status, "body": text}
        await tx.run("answer_request", params)

    @verb
    async def drop_request(self, tx: Transaction, user_name: str, key: str) -> None:
        """The request may be sent again, unless it made something before it failed."""
        await tx.run("drop_request", {"user_name": user_name, "key": key})

    @verb
    async def forget_requests(self, tx: Transaction) -> None:
        await tx.run("forget_requests", {})


def _answered(row: Row) -> Answered:
    fingerprint, _, content = row["fingerprint"].partition(" ")
    status, text = row["status"], row["body"]
    if status is None and text is not None:
        return Answered(fingerprint, content, None, None, int(text))
    return Answered(fingerprint, content, status, text, None)
