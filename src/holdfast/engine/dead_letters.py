"""A dead letter as people see it."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from holdfast.errors import NotThere
from holdfast.store import Store


async def shown_letter(store: Store, letter_id: int) -> dict[str, Any]:
    """Everything about it; of a message with its payload and how it came here."""
    letter = await store.reads.dead_letter(letter_id)
    if letter is None:
        raise NotThere(f"there is no dead letter {letter_id}", "See `holdfast dead list`.")
    return letter | {"payload": _legible(letter["payload"])}


def _legible(payload: bytes | None) -> str | None:
    """The payload's text; what is not text comes in base64, and says so."""
    if payload is None:
        return None
    try:
        return payload.decode()
    except UnicodeDecodeError:
        return "base64:" + b64encode(payload).decode()
