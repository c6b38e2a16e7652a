"""For the demo parts of extensions that take no messages."""

from __future__ import annotations

from collections.abc import Mapping


async def no_messages(body: bytes, files: Mapping[str, bytes]) -> None:
    raise AssertionError("this part of the demo takes no messages")
