"""What the program's doors keep: the secret they sign with, flags, and requests that carry an
idempotency key, each answered once."""

from __future__ import annotations

from typing import Any, NamedTuple

from holdfast.errors import UnfitState
from holdfast.store.audit import add_audit
from holdfast.store.database import Database
from holdfast.store.driver import Row, Transaction
from holdfast.store.instants import parse_instant


class RequestKey(NamedTuple):
    """What makes a request that is sent twice one request. Of one that carries a file, `content`
    says what it carried; that is known only once it has come."""

    user_name: str
    key: str
    content: str = ""


class Answered(NamedTuple):
    """A request of the same key. Without a status it is still being answered, or whoever did so
    is gone; `made` says what it made already, and `content` of what."""

    fingerprint: str
    content: str
    status: int | None
    body: str | None
    made: int | None


class RequestTable:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def secret(self, name: str, fresh: str) -> str:
        """The secret of that name; the first to ask sets it."""
        rows = await self._database.fetch("secret", {"name": name})
        if not rows:
            await self._add_secret(name, fresh)
            rows = await self._database.fetch("secret", {"name": name})
        return str(rows[0][0])

    async def _add_secret(self, name: str, value: str) -> None:
        async def body(tx: Transaction) -> None:
            await tx.run("add_secret", {"name": name, "value": value})

        await self._database.write("add_secret", body)

    async def flags(self) -> dict[str, dict[str, Any]]:
        """The flags that somebody set."""
        rows = await self._database.fetch("flags")
        return {
            name: {"enabled": bool(enabled), "actor": actor, "at": parse_instant(at)}
            for name, enabled, actor, at in rows
        }

    async def set_flag(self, name: str, enabled: bool, actor: str) -> None:
        params = {"name": name, "enabled": int(enabled), "actor": actor}

        async def body(tx: Transaction) -> None:
            await tx.run("set_flag", params)
            await add_audit(tx, actor, "flag.set", None, name, {"enabled": enabled})

        await self._database.write("set_flag", body)

    async def begin_request(self, user_name: str, key: str, fingerprint: str) -> Answered | None:
        """None: it is ours to answer. Else what another of the same key asked, and its answer."""
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
        """It may be sent again, unless it made something before it failed."""

        async def body(tx: Transaction) -> None:
            await tx.run("drop_request", {"user_name": user_name, "key": key})

        await self._database.write("drop_request", body)

    async def forget_requests(self) -> None:
        async def body(tx: Transaction) -> None:
            await tx.run("forget_requests", {})

        await self._database.write("forget_requests", body)


async def note_made(tx: Transaction, request: RequestKey | None, made: int) -> None:
    """What a request makes and that it made it are one transaction; of two that carry the same
    request out, one commits."""
    if request is None:
        return
    content = f" {request.content}" if request.content else ""
    params = {**request._asdict(), "content": content, "made": str(made)}
    if not await tx.take("note_made", params):
        raise UnfitState("the request with this key was answered meanwhile", "Ask again.")


def _answered(row: Row) -> Answered:
    fingerprint, _, content = row[0].partition(" ")
    status, text = row[1:]
    if status is None and text is not None:
        return Answered(fingerprint, content, None, None, int(text))
    return Answered(fingerprint, content, status, text, None)
