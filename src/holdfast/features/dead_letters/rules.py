"""Dead letters as people see them."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

import orjson

from holdfast.errors import NotThere
from holdfast.features.accounts.person import Person
from holdfast.kernel.database.database import Database
from holdfast.kernel.database.rows import LAST_ID, fields_of

if TYPE_CHECKING:
    from holdfast.features.console import Console


class DeadLetters:
    """Lists dead letters and acts on them. A scope is an owner's name; None means all owners."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(
        self, scope: str | None, state: str, limit: int, before: int | None = None
    ) -> list[dict[str, Any]]:
        """Lists dead letters, the newest first."""
        params = {
            "scope": scope or "",
            "state": state,
            "limit": limit,
            "before": before or LAST_ID,
        }
        return [fields_of(row) for row in await self._database.fetch("dead_letters_page", params)]

    async def oldest(self, state: str, limit: int) -> list[dict[str, Any]]:
        rows = await self._database.fetch("dead_letters", {"state": state, "limit": limit})
        return [fields_of(row) for row in rows]

    async def of_item(self, job_id: int, seq: int) -> list[dict[str, Any]]:
        params = {"job_id": job_id, "seq": seq}
        rows = await self._database.fetch("dead_letters_of_item", params)
        return [fields_of(row) for row in rows]

    async def letter(self, letter_id: int) -> dict[str, Any]:
        """Returns everything about a dead letter; of a message also its payload, and where and why
        it died each time."""
        rows = await self._database.fetch("dead_letter", {"id": letter_id})
        if not rows:
            raise NotThere(f"there is no dead letter {letter_id}", "See `holdfast dead list`.")
        letter = fields_of(rows[0])
        history = orjson.loads(letter["history"] or "[]")
        return letter | {"payload": _readable(letter["payload"]), "history": history}

    async def require(self, letter_id: int, scope: str | None) -> None:
        params = {"id": letter_id, "scope": scope or ""}
        if not await self._database.fetch("dead_letter_in_scope", params):
            raise NotThere(
                f"there is no dead letter {letter_id}", "GET /api/dead-letters lists yours."
            )


async def replay_or_drop(console: Console, letter_id: int, person: Person, *, replay: bool) -> None:
    """Drops a dead letter that the person may see, or replays it. The item of one that is dropped
    remains an error."""
    await console.dead_letters.require(letter_id, person.scope)
    await console.store.jobs.act_on_dead_letter(letter_id, replay, person.name)


def _readable(payload: bytes | None) -> str | None:
    """Returns the payload's text; other content is returned in base64, with a prefix that says
    so."""
    if payload is None:
        return None
    try:
        return bytes(payload).decode()
    except UnicodeDecodeError:
        return "base64:" + b64encode(payload).decode()
