"""Remembers keys: a request or a message that is sent again is not carried out again.

A request takes its key before it is carried out, and its answer is kept; a message's key is taken
in the transaction of its effect. What a key led to is noted in the transaction that creates it.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.errors import UnfitState
from holdfast.kernel.database.database import Database, verb
from holdfast.kernel.database.driver import Row, Transaction

#: A message's key is taken with its effect, so no process can be lost in between.
_NOBODY = ""

#: How long the keys of requests and the ids of messages are remembered.
KEYS_DAYS = 14.0


class RequestKey(NamedTuple):
    """Two requests with the same key are one request. `content` identifies an uploaded file: it is
    known only after the upload."""

    user_name: str
    key: str
    content: str = ""


class MessageKey(NamedTuple):
    """The id of a message, or of a batch that a command sends."""

    key: str
    kind: str

    @property
    def user_name(self) -> str:
        return ""

    @property
    def content(self) -> str:
        return ""


Key = RequestKey | MessageKey


class Taken(NamedTuple):
    """A key that was taken before.

    Without a status its request is still being answered, or its process died; `made` is the id of
    what it had created by then, and `content` its file."""

    fingerprint: str
    content: str
    status: int | None
    body: str | None
    made: int | None


class TakenKeys:
    def __init__(self, database: Database) -> None:
        self._database = database

    @verb
    async def begin_request(
        self, tx: Transaction, user_name: str, key: str, fingerprint: str, worker: str
    ) -> Taken | None:
        """Takes the key for the process `worker`; returns None if the caller is to answer the
        request, otherwise the earlier request and its answer."""
        return await take_key(tx, RequestKey(user_name, key), fingerprint, worker)

    @verb
    async def answer_request(
        self, tx: Transaction, user_name: str, key: str, status: int, text: str
    ) -> None:
        params = {"owner_id": user_name, "key": key, "status": status, "body": text}
        await tx.run("answer_key", params)

    @verb
    async def drop_request(self, tx: Transaction, user_name: str, key: str) -> None:
        """Lets the request be sent again, unless it created something before it failed."""
        await tx.run("drop_key", {"owner_id": user_name, "key": key})

    @verb
    async def forget_keys(self, tx: Transaction, seconds: float) -> None:
        """Forgets older keys: nothing is sent again after that time."""
        await tx.run("forget_keys", {"ago": -seconds})


async def take_key(
    tx: Transaction, key: Key, fingerprint: str, worker: str = _NOBODY
) -> Taken | None:
    """Takes the key; returns None if the caller has it now.

    A key whose process was lost can be taken over."""
    params = {"owner_id": key.user_name, "key": key.key, "fingerprint": fingerprint}
    if await tx.take("take_key", params | {"worker": worker}):
        return None
    rows = await tx.fetch("taken_key", params)
    return _taken(rows[0]) if rows else Taken(fingerprint, "", None, None, None)


async def is_first(tx: Transaction, key: Key | None) -> bool:
    """Whether the transaction is the first with this key; not if a message was taken before."""
    if not isinstance(key, MessageKey):
        return True
    return await take_key(tx, key, key.kind) is None


async def note_made(tx: Transaction, key: Key | None, made: int) -> None:
    """Notes what the request created; if two transactions carry out the same request, only one
    commits."""
    if key is None:
        return
    params = {
        "owner_id": key.user_name,
        "key": key.key,
        "content": key.content,
        "made": made,
    }
    if not await tx.take("note_made", params):
        raise UnfitState("the request with this key has just been answered", "Send it again.")


def _taken(row: Row) -> Taken:
    made = None if row["made"] is None else int(row["made"])
    return Taken(row["fingerprint"], row["content"], row["status"], row["body"], made)
