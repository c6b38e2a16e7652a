"""Requests with an idempotency key: each is answered once."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.store.database import Database
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

    async def begin_request(self, user_name: str, key: str, fingerprint: str) -> Answered | None:
        """None: the caller answers it. Otherwise the earlier request and its answer."""
        params = {"user_name": user_name, "key": key, "fingerprint": fingerprint}

        async def body(tx: Transaction) -> Answered | None:
            if await tx.take("begin_request", params):
                return None
            rows = await tx.fetch("request", params)
            return _answered(rows[0]) if rows else Answered(fingerprint, "", None, None, None)

        return await self._database.write("begin_request", body)

    async def answer_request(self, user_name: str, key: str, status: int, text: str) -> None:
        params = {"user_name": user_name, "key": key, "status": status, "body": text}

        async def body(tx: Transaction) -> None:
            await tx.run("answer_request", params)

        await self._database.write("answer_request", body)

    async def drop_request(self, user_name: str, key: str) -> None:
        """The request may be sent again, unless it made something before it failed."""

        async def body(tx: Transaction) -> None:
            await tx.run("drop_request", {"user_name": user_name, "key": key})

        await self._database.write("drop_request", body)

    async def forget_requests(self) -> None:
        async def body(tx: Transaction) -> None:
            await tx.run("forget_requests", {})

        await self._database.write("forget_requests", body)


def _answered(row: Row) -> Answered:
    fingerprint, _, content = row[0].partition(" ")
    status, text = row[1:]
    if status is None and text is not None:
        return Answered(fingerprint, content, None, None, int(text))
    return Answered(fingerprint, content, status, text, None)
