"""Shares robots.txt between workers: one fetches it, the others read it from the database."""

from __future__ import annotations

from contextlib import suppress

from holdfast.errors import DatabaseGone
from holdfast.http.robots import RobotsFile
from holdfast.kernel import Store
from holdfast.kernel.database.driver import Conflict

_SCOPE = "robots.txt"


class SharedRobots:
    """Files of robots.txt that workers share; without the database, every worker fetches its
    own."""

    def __init__(self, store: Store, *, stores: bool = True) -> None:
        self._cache = store.cache
        self._stores = stores

    async def read(self, origin: str) -> RobotsFile | None:
        with suppress(DatabaseGone, Conflict):
            found = await self._cache.read(_SCOPE, [origin])
            if origin in found:
                return RobotsFile(found[origin])
        return None

    async def put(self, origin: str, file: RobotsFile, seconds: float) -> None:
        if not self._stores:
            return
        text = None if file.text is None else file.text.replace("\0", "")
        with suppress(DatabaseGone, Conflict):
            await self._cache.put(_SCOPE, {origin: (text, seconds)})
