"""Cursors: opaque, signed, and bound to the list, its filter and the person who reads it."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

import orjson

from holdfast.api.problems import Malformed

_MAC_BYTES = 16
_LONGEST = 2000


class Cursors:
    """The cursors of one list, as one person filters it."""

    def __init__(
        self, secret: bytes, list_name: str, person: str, filter: Mapping[str, Any]
    ) -> None:
        bound = [list_name, person, dict(filter)]
        text = orjson.dumps(bound, option=orjson.OPT_SORT_KEYS, default=str)
        self._key = hmac.new(secret, b"cursor " + text, hashlib.sha256).digest()

    def write(self, position: Any) -> str:
        text = orjson.dumps(position)
        return base64.urlsafe_b64encode(self._mac(text) + text).decode().rstrip("=")

    def read(self, cursor: str | None) -> Any:
        """The position, or None without a cursor."""
        if cursor is None:
            return None
        if len(cursor) > _LONGEST:
            raise _not_ours()
        try:
            raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True)
        except (binascii.Error, ValueError):
            raise _not_ours() from None
        mac, text = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(text)):
            raise _not_ours()
        return orjson.loads(text)

    def _mac(self, text: bytes) -> bytes:
        return hmac.new(self._key, text, hashlib.sha256).digest()[:_MAC_BYTES]


def _not_ours() -> Malformed:
    return Malformed(
        "`after` is not a cursor of this list with this filter",
        "Give the `next` of the page before, with the same filter; or leave it out.",
    )
