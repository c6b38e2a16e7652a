"""A route or a page that a flag can switch off."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from holdfast.server.dependencies import Parts
from holdfast.server.identity import PartsOf


def require_flag(name: str) -> Callable[[Parts], Awaitable[None]]:
    """Returns a dependency for routes that the flag can switch off."""

    async def check(parts: PartsOf) -> None:
        await parts.flags.require(name)

    return check
