"""Cursors: opaque, signed, and bound to the list, its filter and the person who reads it."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import orjson
from itsdangerous import BadData, URLSafeSerializer

from holdfast.server.problems import Malformed

R = TypeVar("R")
_LONGEST = 2000


class Cursors:
    """The cursors of one list, with one person's filter."""

    def __init__(
        self, secret: bytes, list_name: str, person: str, filter: Mapping[str, Any]
    ) -> None:
        bound_to = [list_name, person, dict(filter)]
        salt = orjson.dumps(bound_to, option=orjson.OPT_SORT_KEYS, default=str)
        self._serializer = URLSafeSerializer(
            secret, salt=b"cursor " + salt, signer_kwargs={"digest_method": hashlib.sha256}
        )

    def write(self, position: Any) -> str:
        return str(self._serializer.dumps(position))

    def read(self, cursor: str | None) -> Any:
        """Returns the position, or None without a cursor."""
        if cursor is None:
            return None
        try:
            position = self._serializer.loads(cursor[:_LONGEST])
            if self.write(position) != cursor:  # base64 has several spellings of the same bytes
                raise BadData("not as it was written")
            return position
        except BadData:
            raise Malformed(
                "`after` is not a cursor of this list with this filter",
                "Send the `next` of the previous page with the same filter, or leave it out.",
            ) from None

    async def page(
        self,
        after: str | None,
        size: int,
        read: Callable[[Any, int], Awaitable[Sequence[R]]],
        position: Callable[[R], Any],
    ) -> tuple[Sequence[R], str | None]:
        """Returns at most `size` rows of the list, and the cursor of the page after them, if there
        is one."""
        rows = await read(self.read(after), size + 1)
        more = self.write(position(rows[size - 1])) if len(rows) > size else None
        return rows[:size], more
